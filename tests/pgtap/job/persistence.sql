-- A standby that is promoted before its first restartpoint has no unlogged relation of the primary.
begin;
select plan(1);
select is_empty(
    $$
    select c.oid::regclass from pg_catalog.pg_class as c
    where c.relnamespace::regnamespace::text like 'jobq%' and c.relpersistence <> 'p'
    $$,
    'every relation is logged'
);
select * from finish();
rollback;
