-- Purpose: sessions that have locked jobq's tables and block claims and enqueues.
-- Invariant: reads only the table of locks, so it never waits.
create or replace function jobq_private.locks_health()
returns setof jobq_private.finding language sql as $$
    select
        'locks', false,
        format(
            '%s holds %s on %s%s', coalesce('pid ' || l.pid, 'a prepared transaction'), l.mode,
            l.relation::regclass, ' for ' || date_trunc('second', clock_timestamp() - a.xact_start)
        ),
        null
    from pg_locks as l
    join pg_database as d on d.oid = l.database and d.datname = current_database()
    join pg_class as c on c.oid = l.relation
    left join pg_stat_activity as a on a.pid = l.pid
    where l.granted
    and l.mode in (
        'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'
    )
    and l.pid is distinct from pg_backend_pid()
    and c.relkind in ('r', 'p')
    and c.relnamespace in ('jobq'::regnamespace, 'jobq_private'::regnamespace)
    -- maintain() and deployments hold such locks for less than a second.
    and coalesce(a.xact_start < clock_timestamp() - interval '1 s', true)
    order by l.pid, l.relation::regclass::text
$$;
