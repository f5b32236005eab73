-- Purpose: obstacles to the cleanup of dead rows and old transactions.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.vacuum_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'snapshot', coalesce(bool_and(h.is_young), true), 'warning',
        coalesce(
            (array_agg(format('%s holds back vacuum by %s transactions%s', h.holder, h.age,
                ', for ' || date_trunc('second', now() - h.began_at))
                order by h.age desc, h.began_at))[1],
            'nothing holds back vacuum'
        ),
        'end the session, drop the replication slot, or finish the prepared transaction'
    from jobq_private.snapshot_holder as h
    union all
    select
        'dead_tuples', d.dead < 50000 or d.dead < d.live, 'warning',
        format('%s dead and %s live rows in the table of live jobs', d.dead, d.live),
        'end what holds back vacuum (see snapshot), then vacuum jobq_private.job'
    from (
        select
            pg_stat_get_dead_tuples('jobq_private.job'::regclass) as dead,
            pg_stat_get_live_tuples('jobq_private.job'::regclass) as live
    ) as d
    union all
    select
        'table_autovacuum', count(*) = 0, 'warning',
        coalesce(
            'autovacuum is off for '
            || jobq_private.listed(array_agg(c.oid::regclass::text order by c.relname)),
            'autovacuum is on for all tables'
        ),
        'alter table … reset (autovacuum_enabled), then vacuum it'
    from pg_class as c
    where c.relnamespace = 'jobq_private'::regnamespace
    and exists (
        select from unnest(c.reloptions) as o (setting)
        where o.setting ~ '^autovacuum_enabled=(off|false|no|0|f|n)$'
    )
    union all
    select
        'transaction_ids', age(d.datfrozenxid) < 1000000000, 'failure',
        format('the oldest transaction id is %s old; at 2.1 billion all writes fail', age(d.datfrozenxid)),
        'end what holds back vacuum (see snapshot), then vacuum (freeze) the database'
    from pg_database as d
    where d.datname = current_database()
    union all
    select
        'multixact', mxid_age(d.datminmxid) < 400000000, 'failure',
        format('the oldest multixact is %s old', mxid_age(d.datminmxid)),
        'let autovacuum finish, or vacuum (freeze) the tables it has not processed'
    from pg_database as d
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000, 'failure',
        format('about %s multixact members are kept', m.members),
        'vacuum (freeze) tables that many sessions lock; at 4 billion all writes fail'
    from jobq_private.multixact_members() as m (members)
$$;
