-- Purpose: problems in the server's configuration and sessions.
create or replace function jobq_private.server_health()
returns setof jobq_private.finding language sql as $$
    select
        s.name, s.setting = 'on' or s.setting like 'remote%' or s.setting = 'local',
        format('%s = %s', s.name, s.setting), null
    from pg_settings as s
    where s.name in ('fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum')
    union all
    select
        'connections', c.used < 0.9 * c.most,
        format('%s of %s connections are in use', c.used, c.most), null
    from (
        select
            count(*) as used,
            current_setting('max_connections')::integer
            - current_setting('superuser_reserved_connections')::integer as most
        from pg_stat_activity as a
        where a.backend_type = 'client backend'
    ) as c
    union all
    select
        'notifications', u.usage < 0.25,
        format('the slowest listener lags by %s %% of the queue', round(100 * u.usage::numeric)), null
    from pg_notification_queue_usage() as u (usage)
$$;
