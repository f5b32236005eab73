-- What jobq_internal.list_undeclared_kinds() promises, and put_kind() with a version.
-- Needs more than the core.
begin;
select plan(15);

select jobq.put_kind('plain');
select jobq.put_kind('built', max_attempts => 2, version => 12);

prepare undeclared (bigint) as
select k.kind from jobq_internal.list_undeclared_kinds('{new,built,plain}', $1) as k;
select results_eq(
    'execute undeclared(null)', '{new}'::text[], 'without a version it is what nobody has declared'
);
select results_eq(
    'execute undeclared(12)', '{new,plain}'::text[],
    'with one also what was declared without'
);
select results_eq(
    'execute undeclared(11)', '{new,plain}'::text[], 'but not what a newer one has declared'
);
select results_eq(
    'execute undeclared(13)', '{built,new,plain}'::text[], 'what an older one has declared is to be declared'
);
select is_empty('select * from jobq_internal.list_undeclared_kinds(null, 1)', 'no kinds, nothing to declare');

-- put_kind() with a version
prepare declared as
select k.max_attempts, k.version from jobq_internal.list_kinds() as k where k.kind = 'built';
select jobq.put_kind('built', max_attempts => 3, version => 11);
select results_eq('declared', 'values (2, 12::bigint)', 'an older version changes nothing');
select jobq.put_kind('built', max_attempts => 3, version => 12);
select results_eq('declared', 'values (2, 12::bigint)', 'nor does the same');
select jobq.put_kind('built', max_attempts => 4, version => 13);
select results_eq('declared', 'values (4, 13::bigint)', 'a newer one replaces it');
select jobq.put_kind('built', max_attempts => 9);
select results_eq('declared', 'values (9, 13::bigint)', 'by hand all is replaced but the version');
select jobq.put_kind('built', max_attempts => 4, version => 13);
select results_eq('declared', 'values (9, 13::bigint)', 'so what was changed by hand stays');
select jobq.put_kind('built', max_attempts => 5, version => 14);
select results_eq('declared', 'values (5, 14::bigint)', 'until there is a newer version');
select jobq.put_kind('plain', max_attempts => 6, version => 1);
select is(
    (select k.max_attempts from jobq_internal.list_kinds() as k where k.kind = 'plain'), 6,
    'a first version replaces what was declared without one'
);
select throws_ok(
    $$ select jobq.put_kind('built', version => 0) $$, '22023', null, 'a version is at least 1'
);
select throws_ok(
    $$ select jobq.put_kind('built', version => 1, run => 'public.nothing') $$, 'JQ007', null,
    'what is declared in vain is checked all the same'
);

select jobq.put_endpoint('sink', 'HTTP', '{"url": "http://u"}') as doc \gset
select throws_ok(
    $$ select jobq.put_kind('sink', max_attempts => 3, version => 2) $$, 'JQ004',
    'the kind is an endpoint', 'a program does not declare what is an endpoint'
);

select * from finish();
rollback;
