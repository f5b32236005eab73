-- Purpose: obstacles to the cleanup of dead rows and old transactions.
create or replace function jobq_private.vacuum_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
as $$
    (
        select
            'snapshot', h.is_young,
            format('%s holds back vacuum by %s transactions%s', h.holder, h.age,
                ', for ' || date_trunc('second', now() - h.began_at)),
            null::text
        from jobq_private.snapshot_holder as h
        order by h.is_young, h.age desc, h.began_at
        limit 1
    )
    union all
    select
        'dead_tuples', d.dead < 50000 or d.dead < d.live,
        format('%s dead and %s live rows in the table of live jobs', d.dead, d.live), null
    from (
        select
            pg_stat_get_dead_tuples('jobq_private.job'::regclass) as dead,
            pg_stat_get_live_tuples('jobq_private.job'::regclass) as live
    ) as d
    union all
    select 'table_autovacuum', false, c.oid::regclass::text, null
    from pg_class as c
    cross join unnest(c.reloptions) as o (setting)
    where c.relnamespace = 'jobq_private'::regnamespace
    and o.setting ~ '^autovacuum_enabled=(off|false|no|0|f|n)$'
    union all
    select f.*, null
    from pg_database as d
    cross join lateral (
        values
        (
            'transaction_ids', age(d.datfrozenxid) < 1000000000,
            format('the oldest transaction id is %s old; at 2.1 billion all writes fail',
                age(d.datfrozenxid))
        ),
        (
            'multixact', mxid_age(d.datminmxid) < 400000000,
            format('the oldest multixact is %s old', mxid_age(d.datminmxid))
        )
    ) as f
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s multixact members are kept', m.members), null
    from jobq_private.multixact_members() as m (members)
$$;
