-- Purpose: the queues with waiting jobs, found by stepping from each to the next.
-- Invariant: two descents of an index per queue, however many jobs wait: one index has
-- the jobs with keys, another those without.
create or replace view jobq_private.waiting_queue as
with recursive step (queue) as (
    select ''
    union all
    select least(
        (
            select j.queue
            from jobq_private.job as j
            where j.state in ('queued', 'retrying')
            and j.due_at is not null
            and j.queue > s.queue
            order by j.queue
            limit 1
        ),
        (
            select j.queue
            from jobq_private.job as j
            where j.state in ('queued', 'retrying')
            and j.key_id is not null
            and j.queue > s.queue
            order by j.queue
            limit 1
        )
    )
    from step as s
    where s.queue is not null
)
select s.queue from step as s where s.queue <> '';
