-- Purpose: whether maintain() and schedules work.
-- Invariant: each part is one index probe or a statistic.
create or replace function jobq_private.maintenance_health()
returns setof jobq_private.finding language sql as $$
    select
        'maintenance', false,
        format('%s failed %s times, last at %s: %s %s',
            f.task, f.failures, f.failed_at, f.sqlstate, f.error), null
    from jobq_private.failed_task as f
    union all
    select
        'maintenance', false,
        format('%s blocks maintain(), which last finished at %s',
            coalesce('pid ' || l.pid, 'a prepared transaction'), h.rolled_to), null
    from pg_locks as l
    join pg_database as d on d.oid = l.database and d.datname = current_database()
    cross join jobq_private.history_mark as h
    where l.locktype = 'advisory'
    and l.classid = jobq_private.lock_class('maintaining')::oid
    and l.granted
    and h.rolled_to < now() - interval '5 min'
    union all
    (
        select
            'schedules', false,
            format('%s should have fired at %s: %s', s.name, s.next_run_at, s.failure), null
        from jobq_private.schedule as s
        where s.retry_at is not null and s.status = 'active'
        order by s.name
    )
    union all
    select
        'partitions', t.found is not null,
        format('the archive partition of tomorrow, %s, is %s', t.day,
            case when t.found is null then 'missing' else 'ready' end), null
    from to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD') as d (day)
    cross join lateral (select d.day, to_regclass('jobq_private.job_archive_' || d.day) as found) as t
$$;
