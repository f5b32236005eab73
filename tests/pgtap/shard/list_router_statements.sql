-- What a router is written from: the catalog and the table of routes.
begin;
select plan(6);

select is_empty(
    $$select p.proname::text collate "default" from pg_proc as p
    where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
    except select r.function_name from jobq_private.route as r$$,
    'every public function has a route: add its row in deploy/shard_tables.sql'
);
select is_empty(
    $$select r.function_name from jobq_private.route as r
    except select p.proname::text collate "default" from pg_proc as p
    where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)$$,
    'and every route a function'
);
select is_empty(
    $$select r.function_name from jobq_private.route as r
    where r.class = 'refused' and r.detail !~ '\w+ \w+ \w+'$$,
    'what is refused has a reason'
);
select is_empty(
    $$select r.function_name from jobq_private.route as r
    join pg_proc as p on p.proname = r.function_name and p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
    where r.class in ('id', 'schedule', 'split', 'some', 'jobs') and not r.detail = any (p.proargnames)$$,
    'what decides is an argument'
);
select results_eq(
    $$select count(*) from jobq_internal.list_router_statements() as s
    where s.statement ~ '(?n)^create function jobq(_internal)?[.]'$$,
    $$select count(*) from jobq_private.route as r where r.class <> 'own'$$,
    'each function but the router''s own is written once'
);
create function jobq.new_one(a integer) returns text language sql as 'select null::text';
select matches(
    (select s.statement from jobq_internal.list_router_statements() as s
     where s.statement like 'create function jobq.new_one(a integer) returns text%'),
    'ONE_DATABASE', 'a function without a route is refused'
);

select * from finish();
rollback;
