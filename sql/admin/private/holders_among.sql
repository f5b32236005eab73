-- Purpose: for those of these jobs that are blocked, one that blocks each: an ancestor over
-- open edges that waits for no job itself.
-- Invariant: reads only; reads each edge among them once, and none beyond. Each job follows
-- its first parent, so it is reached once. Each step probes a hash of all these pairs.
create or replace function jobq_private.holders_among(job_ids uuid[])
returns table (job_id uuid, held_up_by uuid) language sql stable set jit = off
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off as $$
    with recursive pair as materialized (
        select distinct on (e.child) e.child, e.parent
        from jobq_private.edge as e
        join jobq_private.job as j on j.job_id = e.child
        join unnest(holders_among.job_ids) as p (job_id) on p.job_id = e.parent
        where e.child = any(holders_among.job_ids) and e.is_open
        and j.job_id = any(holders_among.job_ids) and j.state = 'blocked'
        order by e.child, e.parent
    ),
    held (job_id, held_up_by) as (
        select t.child, t.parent from pair as t
        where not exists (select from pair as a where a.child = t.parent)
        union all
        select t.child, h.held_up_by
        from held as h
        join pair as t on t.parent = h.job_id
    )
    select h.job_id, h.held_up_by from held as h
$$;
