-- Purpose: the queues with waiting jobs, found by stepping from each to the next.
-- Invariant: one descent of an index per queue, however many jobs wait: one index has
-- the jobs with keys, another those without.
create or replace view jobq_private.waiting_queue as
with recursive ready as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.due_at is not null
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.due_at is not null
        and j.queue > r.queue
        order by j.queue
        limit 1
    )
    from ready as r
    where r.queue is not null
),
keyed as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.key_id is not null
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying')
        and j.key_id is not null
        and j.queue > l.queue
        order by j.queue
        limit 1
    )
    from keyed as l
    where l.queue is not null
)
select r.queue from ready as r where r.queue is not null
union
select l.queue from keyed as l where l.queue is not null;

comment on view jobq_private.waiting_queue is
'Queues in which jobs wait.';
