-- Purpose: delete the steps, chunks of streams, waits, edges and names of deleted jobs,
-- and events and batches past retention.
-- Invariant: per call, at most max_rows events, waits, chunks and batches, and other rows of
-- max_rows jobs. Keeps events that a job waits for, and signals to jobs that can be redriven.
-- A login that does not see all queues deletes only waits. Returns the number of deleted rows.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint language sql set jit = off set enable_seqscan = off as $$
    with recursive past as materialized (
        select
            p.before, jobq_private.id_floor(p.before) as before_id,
            uuid '00000000-0000-0000-0000-000000000000' as no_job
        from (select now() - s.retention as before from jobq_private.setting as s) as p
        where jobq_private.worked_queues() is null
    ),
    events as (
        delete from jobq_private.event as e
        where e.ctid = any(array(
            select o.ctid
            from past as p join jobq_private.event as o on o.emitted_at < p.before
            where not exists (
                select from jobq_private.waiter as w
                where w.event = o.event and o.job_id in (w.job_id, p.no_job)
            )
            and (o.job_id = p.no_job or jobq_private.state_of(o.job_id) is null)
            order by o.emitted_at limit max_rows
        ))
        returning 1
    ),
    waiters as (
        delete from jobq_private.waiter as w
        where w.ctid = any(array(
            select o.ctid from jobq_private.waiter as o
            where o.since < now() - interval '1 day'
            and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
            order by o.since limit max_rows
        ))
        returning 1
    ),
    -- the jobs with rows here, one after the other, whatever the number of their rows
    old as (
        select p.no_job as job_id from past as p
        union all
        select least(
            (select s.job_id from jobq_private.step as s
            where s.job_id > o.job_id order by s.job_id limit 1),
            (select c.job_id from jobq_private.stream_chunk as c
            where c.job_id > o.job_id order by c.job_id limit 1),
            (select e.child from jobq_private.edge as e
            where e.child > o.job_id order by e.child limit 1),
            (select n.job_id from jobq_private.node as n
            where n.job_id > o.job_id order by n.job_id limit 1)
        )
        from past as p join old as o on o.job_id < p.before_id
    ),
    gone as materialized (
        select o.job_id
        from past as p join old as o on o.job_id < p.before_id and o.job_id <> p.no_job
        where jobq_private.state_of(o.job_id) is null
        limit max_rows
    ),
    chunks as (
        delete from jobq_private.stream_chunk as c
        where c.ctid = any(array(
            select o.ctid
            from gone as g join jobq_private.stream_chunk as o on o.job_id = g.job_id
            limit max_rows
        ))
        returning 1
    ),
    steps as (delete from jobq_private.step where job_id in (table gone) returning 1),
    edges as (delete from jobq_private.edge where child in (table gone) returning 1),
    nodes as (delete from jobq_private.node where job_id in (table gone) returning 1),
    batches as (
        delete from jobq_private.batch as b
        where b.ctid = any(array(
            select o.ctid
            from past as p join jobq_private.batch as o
                on o.opened_at < p.before and o.ended_at < p.before
            limit max_rows
        ))
        returning 1
    )
    select count(*)
    from (
        table events union all table chunks union all table steps union all table edges
        union all table nodes union all table waiters union all table batches
    ) as deleted
$$;
