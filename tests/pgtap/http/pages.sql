-- Every function that returns a page refuses a maximum out of its range.
begin;

select jobq.create_schedule('s', 'k', every => '1 h') as schedule_id \gset
create temporary table page as
select p.oid::regproc::text as function, a.name as argument, concat(
    case when 'job_id' = any(p.proargnames) then format('job_id => %L, ', :'schedule_id') end,
    case when 'schedule' = any(p.proargnames) then 'schedule => ''s'', ' end,
    case when p.proname = 'page_definitions' then 'type => ''config'', ' end
) as others
from pg_proc as p
cross join lateral unnest(p.proargnames) as a (name)
where p.pronamespace::regnamespace::text in ('jobq_http', 'jobq_internal')
and p.proname like 'page\_%' and a.name like 'max\_%';

select plan(1 + 4 * (select count(*)::integer from page));
select cmp_ok((select count(*) from page), '>=', 8::bigint, 'the catalog was read');
select is(
    refusal(format('select * from %s(%s%s => %s)', p.function, p.others, p.argument, v.value)),
    v.refusal,
    format('%s(%s => %s): %s', p.function, p.argument, v.value, v.refusal)
)
from page as p
cross join (
    values
    ('-1', '22023 INVALID_ARGUMENT'), ('0', '22023 INVALID_ARGUMENT'),
    ('2147483647', '22023 INVALID_ARGUMENT'), ('null', '22004 NULL_ARGUMENT')
) as v (value, refusal);

select * from finish();
rollback;
