-- Purpose: queues whose jobs have been due for a minute without a live worker.
-- Invariant: reads only; a hundred jobs of each queue show whether one has been due. Only
-- where there are keys, limits or pauses, next_due() is asked whether a worker could start
-- one, for a hundred queues. 500 queues at most.
create or replace function jobq_private.unserved_queues()
returns table (queue text) language sql stable as $$
    with served as materialized (
        select distinct k.queues from jobq_private.live_worker as k
    ),
    due as materialized (
        select w.queue, row_number() over (order by w.queue) as n
        from jobq_private.waiting_counts(100) as w
        where w.due < now() - interval '1 min'
        and not exists (
            select from served as s where jobq_private.serves(s.queues, w.queue)
        )
        and not exists (
            select from jobq_private.queue as q
            where q.queue = w.queue and q.paused_at is not null
        )
        order by w.queue
        limit 500
    )
    select d.queue
    from due as d
    left join jobq_private.queue as q on q.queue = d.queue
    where case
        when num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
            or exists (select from jobq_private.paused_kind)
            or exists (select from jobq_private.waiting_key as k where k.queue = d.queue)
        then case when d.n <= 100 then
            coalesce(jobq_private.next_due(array[d.queue]) < now() - interval '1 min', false)
        end
        else true
    end
    order by d.n
$$;
