-- Purpose: delete the steps, chunks of streams, waits, edges and names of deleted jobs,
-- and events and batches past retention.
-- Invariant: at most max_rows of each per call. Keeps events that a job waits for, and
-- signals to jobs that can be redriven. A login that does not see all queues keeps rows
-- of jobs that it may not see. Returns the number of deleted rows.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint
language sql
set jit = off
set enable_seqscan = off
as $$
    with recursive past as materialized (
        select
            now() - s.retention as before, jobq_private.id_floor(now() - s.retention) as before_id,
            jobq_private.worked_queues() is null as sees_all,
            uuid '00000000-0000-0000-0000-000000000000' as no_job
        from jobq_private.setting as s
    ),
    events as (
        delete from jobq_private.event as e
        where (e.event, e.job_id) in (
            select o.event, o.job_id
            from past as p
            join jobq_private.event as o on o.emitted_at < p.before
            where not exists (
                select from jobq_private.waiter as w
                where w.event = o.event and o.job_id in (w.job_id, p.no_job)
            )
            and (o.job_id = p.no_job or jobq_private.state_of(o.job_id) is null)
            order by o.emitted_at limit max_rows
        )
        returning 1
    ),
    waiters as (
        delete from jobq_private.waiter as w
        where (w.job_id, w.event) in (
            select o.job_id, o.event
            from jobq_private.waiter as o
            where o.since < now() - interval '1 day'
            and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
            order by o.since limit max_rows
        )
        returning 1
    ),
    steps as (
        delete from jobq_private.step as s
        where s.job_id in (
            select distinct o.job_id
            from past as p join jobq_private.step as o on o.job_id < p.before_id
            where jobq_private.state_of(o.job_id) is null
            order by o.job_id limit max_rows
        )
        returning 1
    ),
    -- old jobs with streams, one after the other, whatever the number of their chunks
    streamed as (
        (
            select o.job_id
            from past as p join jobq_private.stream_chunk as o on o.job_id < p.before_id
            order by o.job_id limit 1
        )
        union all
        select (
            select o.job_id
            from past as p join jobq_private.stream_chunk as o
                on o.job_id < p.before_id and o.job_id > s.job_id
            order by o.job_id limit 1
        )
        from streamed as s where s.job_id is not null
    ),
    chunks as (
        delete from jobq_private.stream_chunk as c
        where c.ctid = any(array(
            select g.ctid
            from streamed as s
            cross join lateral (
                select o.ctid
                from jobq_private.stream_chunk as o
                where o.job_id = s.job_id
                limit max_rows
            ) as g
            where s.job_id is not null and jobq_private.state_of(s.job_id) is null
            limit max_rows
        ))
        returning 1
    ),
    edges as (
        delete from jobq_private.edge as e
        where e.child in (
            select distinct o.child
            from past as p join jobq_private.edge as o on o.child < p.before_id
            where p.sees_all and jobq_private.state_of(o.child) is null
            order by o.child limit max_rows
        )
        returning 1
    ),
    nodes as (
        delete from jobq_private.node as n
        where n.job_id in (
            select o.job_id
            from past as p join jobq_private.node as o on o.job_id < p.before_id
            where p.sees_all and jobq_private.state_of(o.job_id) is null
            order by o.job_id limit max_rows
        )
        returning 1
    ),
    batches as (
        delete from jobq_private.batch as b
        where b.batch_id in (
            select o.batch_id
            from past as p
            join jobq_private.batch as o on o.opened_at < p.before and o.ended_at < p.before
            where p.sees_all
            limit max_rows
        )
        returning 1
    )
    select count(*)
    from (
        select from events union all select from waiters union all select from steps
        union all select from chunks union all select from edges union all select from nodes
        union all select from batches
    ) as gone
$$;
