-- Purpose: whether maintain() and schedules work.
-- Invariant: reads only; each part is one index probe or a statistic. Raises: nothing.
create or replace function jobq_private.maintenance_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'maintenance', count(*) = 0, 'failure',
        coalesce(
            jobq_private.listed(array_agg(m.problem order by m.problem), '; '), 'no task has failed'
        ),
        'fix the cause of the error, or end that session; maintain() retries at each call'
    from (
        select format(
            '%s failed %s times, last at %s: %s %s',
            f.task, f.failures, f.failed_at, f.sqlstate, f.error
        )
        from jobq_private.failed_task as f
        union all
        select format(
            '%s blocks maintain(), which last finished at %s',
            coalesce('pid ' || l.pid, 'a prepared transaction'), h.rolled_to
        )
        from pg_locks as l
        join pg_database as d on d.oid = l.database and d.datname = current_database()
        cross join jobq_private.history_mark as h
        where l.locktype = 'advisory'
        and l.classid = jobq_private.lock_class('maintaining')::oid
        and l.granted
        and h.rolled_to < now() - interval '5 min'
    ) as m (problem)
    union all
    select
        'schedules', count(*) = 0, 'warning',
        coalesce(
            left(string_agg(
                format('%s should have fired at %s: %s', s.name, s.next_run_at, s.failure),
                '; ' order by s.name
            ), 500),
            'all schedules fire'
        ),
        'fix the cause of the error, or change or retire the schedule; it is retried each minute, and others fire'
    from jobq_private.schedule as s
    where s.retry_at is not null and s.status = 'active'
    union all
    select
        'partitions', to_regclass('jobq_private.job_archive_' || t.tomorrow) is not null, 'warning',
        format('the archive partition of tomorrow, %s, %s', t.tomorrow, case
            when to_regclass('jobq_private.job_archive_' || t.tomorrow) is null
            then 'is missing' else 'is ready' end),
        'call maintain(); until then finished jobs go to the default partition'
    from (
        select to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD') as tomorrow
    ) as t
$$;
