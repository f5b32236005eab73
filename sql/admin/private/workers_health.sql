-- Purpose: whether workers are alive, can run the declared kinds, and are not stuck.
-- Invariant: reads only; each part is one index probe or a statistic. Raises: nothing.
create or replace function jobq_private.workers_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'workers', count(*) filter (where w.seen_at > now() - interval '1 min') > 0, 'failure',
        format('%s workers were seen in the last minute',
            count(*) filter (where w.seen_at > now() - interval '1 min')),
        'start a worker'
    from jobq_private.worker as w
    union all
    select
        'functions', count(*) = 0, 'warning',
        coalesce(
            jobq_private.listed(array_agg(
                format('kind %s needs %s', k.kind, coalesce(p.problem, b.bar)) order by k.kind
            ), '; '),
            'every function of a kind exists'
        ),
        'create the function, allow the login of a worker to run it, or change the kind with put_kind()'
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
    cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
    where k.run is not null and coalesce(p.problem, b.bar) is not null
    union all
    select
        'slots', count(*) = 0, 'warning',
        coalesce(
            jobq_private.listed(array_agg(
                format('handlers that hang occupy %s slots of worker %s', w.stuck, w.worker)
                order by w.worker
            )),
            'no handler hangs after its timeout'
        ),
        'add timeouts inside these handlers, or use process=True'
    from jobq_private.worker as w
    where w.stuck > 0 and w.seen_at > now() - interval '1 min'
    union all
    select
        'endpoints', count(*) = 0, 'warning',
        coalesce(
            jobq_private.listed(array_agg(
                format('%s is paused since %s%s', e.endpoint, date_trunc('second', e.paused_at),
                    coalesce(': ' || e.pause_reason, ''))
                order by e.paused_at
            ), '; '),
            'no paused endpoint has had deliveries due for 5 minutes'
        ),
        'fix the endpoint, then call resume_endpoint()'
    from jobq_private.endpoint as e
    where e.paused_at is not null
    and exists (
        select from jobq_private.parked_job as p
        where p.endpoint = e.endpoint and p.run_at < now() - interval '5 min'
    )
$$;
