-- Purpose: problems with standbys, slots and publications.
create or replace function jobq_private.replication_health()
returns setof jobq_private.finding language sql as $$
    select
        'standby', false,
        'this is a standby: it accepts no jobs, and some checks need the primary', null
    where pg_is_in_recovery()
    union all
    (
        select
            'wal', l.bytes <= 4 * pg_size_bytes(current_setting('max_wal_size')),
            format('slot %s retains %s of WAL', r.slot_name, pg_size_pretty(l.bytes)), null
        from pg_replication_slots as r
        cross join lateral pg_wal_lsn_diff(
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
            r.restart_lsn
        ) as l (bytes)
        where r.restart_lsn is not null
        order by l.bytes desc
        limit 1
    )
    union all
    select c.subject, c.is_ok, c.finding, null
    from substr(current_setting('synchronous_standby_names'), 1, 200) as s (required)
    cross join (
        select
            count(*) filter (where w.state is distinct from 'backup' and not exists (
                select from pg_replication_slots as l
                where l.active_pid = w.pid and l.slot_type = 'logical'
            )) as connected,
            count(*) filter (where w.sync_state in ('sync', 'quorum')) as confirming
        from pg_stat_replication as w
    ) as r
    cross join lateral (
        values
        ('failover', r.connected = 0 or s.required <> '' or pg_is_in_recovery(), case
            when r.connected = 0 then 'no standby is connected'
            when s.required <> '' then 'commits wait for ' || s.required
            else format('%s are connected, and no commit waits for them', r.connected)
        end),
        ('confirmation', false, case
            when s.required <> '' and r.confirming = 0 and not pg_is_in_recovery()
            then format('every commit waits for %s, and none of them is connected', s.required)
        end)
    ) as c (subject, is_ok, finding)
    where c.finding is not null
    union all
    (
        select 'publication', false, format('%s by %s', p.tablename, p.pubname), null
        from pg_publication_tables as p
        where p.schemaname = 'jobq_private' and p.tablename in ('job', 'worker')
        order by p.pubname, p.tablename
    )
$$;
