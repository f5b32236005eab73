-- Purpose: the jobs that block a job: its ancestors over open edges that wait for no
-- job themselves; they may wait for the end of a batch.
-- Invariant: reads only, at most 1,000 ancestors.
create or replace function jobq_private.holders(blocked uuid)
returns table (job_id uuid, state text) language sql stable as $$
    with recursive above as (
        select holders.blocked as job_id
        union
        select e.parent
        from above as a
        join jobq_private.edge as e on e.child = a.job_id and e.is_open
    )
    select h.job_id, s.state
    from (select a.job_id from above as a limit 1000) as h
    cross join lateral jobq_private.state_of(h.job_id) as s (state)
    where h.job_id <> holders.blocked
    and (
        s.state is distinct from 'blocked'
        or not exists (
            select from jobq_private.edge as e where e.child = h.job_id and e.is_open
        )
    )
$$;
