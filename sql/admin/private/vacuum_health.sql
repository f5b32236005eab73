-- Purpose: obstacles to the cleanup of dead rows and old transactions.
create or replace function jobq_private.vacuum_health()
returns setof jobq_private.finding language sql as $$
    (
        select
            'snapshot', h.is_young,
            format('%s holds back vacuum by %s transactions%s', h.holder, h.age,
                ', for ' || date_trunc('second', now() - h.began_at)), null
        from jobq_private.snapshot_holder as h
        order by h.is_young, h.age desc, h.began_at
        limit 1
    )
    union all
    select
        'dead_tuples', t.n_dead_tup < 50000 or t.n_dead_tup < t.n_live_tup,
        format('%s dead and %s live rows in the table of live jobs', t.n_dead_tup, t.n_live_tup), null
    from pg_stat_all_tables as t
    where t.relid = 'jobq_private.job'::regclass
    union all
    select 'table_autovacuum', false, c.oid::regclass::text, null
    from pg_class as c
    cross join unnest(c.reloptions) as o (setting)
    where c.relnamespace = 'jobq_private'::regnamespace
    and o.setting ~ '^autovacuum_enabled=(off|false|no|0|f|n)$'
    union all
    select f.subject, f.age < f.most, format(f.finding, f.age), null
    from pg_database as d
    cross join lateral (
        values
        ('transaction_ids', age(d.datfrozenxid), 1000000000,
            'the oldest transaction id is %s old; at 2.1 billion all writes fail'),
        ('multixact', mxid_age(d.datminmxid), 400000000, 'the oldest multixact is %s old')
    ) as f (subject, age, most, finding)
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s multixact members are kept', m.members), null
    from jobq_private.multixact_members() as m (members)
$$;
