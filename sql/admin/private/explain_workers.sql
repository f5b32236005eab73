-- Purpose: what the workers and functions that could run a waiting job lack, for explain().
-- Invariant: reads only; no row if nothing is lacking.
create or replace function jobq_private.explain_workers(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'no_function', format(
        'kind %s needs %s', k.kind, coalesce(p.problem || '; create it, or change the kind', b.bar)
    )
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
    cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
    where k.kind = job.kind and k.run is not null and coalesce(p.problem, b.bar) is not null
    union all
    select case when s.is_served then 'unknown_kind' else 'no_worker' end, case
        when not s.is_served then format('no worker of queue %s was seen in the last minute', job.queue)
        else format('no live worker of queue %s has %s kind %s', job.queue, case
            when exists (select from jobq_private.endpoint as e where e.endpoint = job.kind)
            then 'driver and keys to deliver'
            else 'a handler for'
        end, job.kind)
    end
    from (
        select exists (
            select from jobq_private.live_worker as w where jobq_private.serves(w.queues, job.queue)
        ) as is_served
    ) as s
    where not s.is_served or jobq_private.is_unknown(job.kind, job.queue)
    union all
    (
        select 'slots_lost', format('handlers that hang occupy %s slots of worker %s', w.stuck, w.worker)
        from jobq_private.live_worker as w
        where w.stuck > 0 and jobq_private.serves(w.queues, job.queue)
        order by w.worker
    )
$$;
