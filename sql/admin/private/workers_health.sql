-- Purpose: whether workers are alive, can run the declared kinds, and are not stuck.
-- Invariant: each part is one index probe or a statistic.
create or replace function jobq_private.workers_health()
returns setof jobq_private.finding language sql as $$
    select
        'workers', count(*) > 0, format('%s workers were seen in the last minute', count(*)), null
    from jobq_private.live_worker as w
    union all
    (
        select
            'functions', false, format('kind %s needs %s', k.kind, coalesce(p.problem, b.bar)), null
        from jobq_private.kind as k
        cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
        cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
        where k.run is not null and coalesce(p.problem, b.bar) is not null
        order by k.kind
    )
    union all
    (
        select
            'slots', false,
            format('handlers that hang occupy %s slots of worker %s', w.stuck, w.worker), null
        from jobq_private.live_worker as w
        where w.stuck > 0
        order by w.worker
    )
    union all
    (
        select
            'endpoints', false,
            format('%s is paused since %s%s', e.endpoint, date_trunc('second', e.paused_at),
                ': ' || e.pause_reason), null
        from jobq_private.endpoint as e
        where e.paused_at is not null
        and exists (
            select from jobq_private.parked_job as p
            where p.endpoint = e.endpoint and p.run_at < now() - interval '5 min'
        )
        order by e.paused_at
    )
$$;
