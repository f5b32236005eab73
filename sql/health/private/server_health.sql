-- Purpose: what in the server's configuration and state threatens the promise.
-- Invariant: reads only. The pid of a snapshot's holder is seen by members of
-- pg_read_all_stats; others see its age. Raises: nothing.
create or replace function jobq_private.server_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        s.name, s.setting = 'on' or s.setting like 'remote%' or s.setting = 'local',
        format('%s = %s', s.name, s.setting),
        format('set %s = on: a crash may lose what was acknowledged, or bloat grows', s.name)
    from pg_settings as s
    where s.name in ('fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum')
    union all
    select
        'snapshot', coalesce(bool_and(h.is_young), true),
        coalesce(
            min(format('%s holds back vacuum by %s transactions%s', h.holder, h.age, h.since))
                filter (where h.nth = 1),
            'nobody holds back vacuum'
        ),
        'end the session, drop the replication slot, or finish the prepared transaction'
    from (
        select
            g.holder, age(g.xmin) as age,
            ', for ' || date_trunc('second', now() - g.began_at) as since,
            age(g.xmin) < 1000000
            and coalesce(now() - g.began_at < interval '10 min', true) as is_young,
            row_number() over (order by age(g.xmin) desc, g.began_at) as nth
        from (
            select
                format('pid %s', a.pid) as holder,
                coalesce(a.backend_xmin, a.backend_xid) as xmin, a.xact_start as began_at
            from pg_stat_activity as a
            where num_nonnulls(a.backend_xmin, a.backend_xid) > 0
            and a.pid <> pg_backend_pid()
            union all
            select format('slot %s', r.slot_name), r.xmin, null
            from pg_replication_slots as r
            where r.xmin is not null
            union all
            select format('prepared %s', p.gid), p.transaction, p.prepared
            from pg_prepared_xacts as p
        ) as g
    ) as h
    union all
    select
        'wal', count(*) filter (where k.bytes > 4 * k.most) = 0,
        coalesce(
            min(format('slot %s keeps %s of the log', k.slot_name, pg_size_pretty(k.bytes)))
                filter (where k.nth = 1),
            'no replication slot keeps any of the log'
        ),
        'have who reads the slot catch up, drop the slot, or set max_slot_wal_keep_size, before'
        ' the disk is full and all writing ends'
    from (
        select
            l.slot_name, l.bytes, pg_size_bytes(current_setting('max_wal_size')) as most,
            row_number() over (order by l.bytes desc) as nth
        from (
            select
                r.slot_name,
                pg_wal_lsn_diff(
                    case
                        when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                        else pg_current_wal_lsn()
                    end,
                    r.restart_lsn
                ) as bytes
            from pg_replication_slots as r
            where r.restart_lsn is not null
        ) as l
    ) as k
    union all
    select
        'multixact', mxid_age(d.datminmxid) < 400000000,
        format('the oldest multixact is %s old', mxid_age(d.datminmxid)),
        'let autovacuum finish, or vacuum (freeze) the tables that it has not reached'
    from pg_database as d
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s members of multixacts are kept', m.members),
        'vacuum (freeze) what many sessions lock at once, before 4 billion stop all writing'
    from jobq_private.multixact_members() as m (members)
    union all
    select
        'notifications', pg_notification_queue_usage() < 0.25,
        format('the slowest listener lags by %s %% of the queue',
            round(100 * pg_notification_queue_usage()::numeric)),
        'end the session that listens and stays idle in a transaction'
    union all
    select
        'failover', r.standbys = 0 or s.setting <> '' or pg_is_in_recovery(),
        case
            when r.standbys = 0 then 'no standby follows'
            when s.setting <> '' then 'commits wait for ' || left(s.setting, 200)
            else format('%s follow, and no commit waits for them', r.standbys)
        end,
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses what was'
        ' acknowledged and has not reached the standby'
    from pg_settings as s
    cross join (
        select count(*) as standbys
        from pg_stat_replication as w
        where w.state is distinct from 'backup'
        and not exists (
            select from pg_replication_slots as l
            where l.active_pid = w.pid and l.slot_type = 'logical'
        )
    ) as r
    where s.name = 'synchronous_standby_names'
$$;

revoke all on function jobq_private.server_health from public;

comment on function jobq_private.server_health is
'What in the server threatens the promise, each with its remedy.';
