-- Purpose: problems with standbys, slots and publications.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.replication_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'standby', not pg_is_in_recovery(), 'warning',
        case when pg_is_in_recovery()
            then 'this is a standby: it accepts no jobs, and some checks need the primary'
            else 'this is a primary'
        end,
        'connect to the primary: list all hosts in the URL, with target_session_attrs=read-write'
    union all
    select
        'wal', count(*) filter (where l.bytes > 4 * pg_size_bytes(current_setting('max_wal_size'))) = 0,
        'warning',
        coalesce(
            (array_agg(
                format('slot %s retains %s of WAL', l.slot_name, pg_size_pretty(l.bytes))
                order by l.bytes desc
            ))[1],
            'no replication slot retains WAL'
        ),
        'let the reader of the slot catch up, drop the slot, or set max_slot_wal_keep_size, before'
        ' the disk is full and all writes fail'
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
    union all
    select
        'failover', r.standbys = 0 or s.setting <> '' or pg_is_in_recovery(), 'warning',
        case
            when r.standbys = 0 then 'no standby is connected'
            when s.setting <> '' then 'commits wait for ' || left(s.setting, 200)
            else format('%s are connected, and no commit waits for them', r.standbys)
        end,
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses commits that were'
        ' acknowledged but have not reached the standby'
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
    union all
    select
        'confirmation', s.setting = '' or r.standbys > 0 or pg_is_in_recovery(), 'failure',
        case when s.setting = '' or r.standbys > 0 or pg_is_in_recovery()
            then 'every required standby is connected'
            else format('every commit waits for %s, and none of them is connected', left(s.setting, 200))
        end,
        'start the standby, or remove it from synchronous_standby_names'
    from pg_settings as s
    cross join (
        select count(*) as standbys
        from pg_stat_replication as w
        where w.sync_state in ('sync', 'quorum')
    ) as r
    where s.name = 'synchronous_standby_names'
    union all
    select
        'publication', count(*) = 0, 'warning',
        coalesce(
            'published: ' || jobq_private.listed(
                array_agg(format('%s by %s', p.tablename, p.pubname) order by p.pubname, p.tablename)
            ),
            'no publication contains the tables of live jobs'
        ),
        'alter publication … drop table, unless you are migrating the database: each change of a job is'
        ' decoded and sent'
    from pg_publication_tables as p
    where p.schemaname = 'jobq_private' and p.tablename in ('job', 'worker')
$$;
