-- A worker reports what an attempt has really cost.
begin;
select plan(22);

create function pg_temp.spent(scope text)
returns numeric
language sql
as $$
    select b.spent from jobq_internal.list_budgets() as b where b.scope = spent.scope and not b.each_key
$$;

create function pg_temp.reserved(scope text)
returns numeric
language sql
as $$
    select b.reserved from jobq_internal.list_budgets() as b where b.scope = reserved.scope and not b.each_key
$$;

create function pg_temp.debt()
returns integer
language sql
as $$
    select round(u.rate_used)::integer
    from jobq_private.limit_usage(array[row(
        jobq_private.limit_id('llm', null, null), 'llm', null, null
    )::jobq_private.scope], clock_timestamp()) as u
$$;

select jobq.put_queue('llm', rate_limit => 1, rate_period => '1 h', rate_burst => 5000);
select jobq.put_budget('queue', 'llm', 10000, 'month');
select jobq.enqueue('k', queue => 'llm', cost => 1000) as job \gset
select is(refusal(format('select jobq.spend(%L, 1, 5)', :'job')), 'JQ003 LEASE_LOST', 'only what runs reports');
select count(*) as claimed from jobq.claim('{llm}', 'w') \gset
select is(pg_temp.spent('llm'), 1000::numeric, 'a start is charged what the job is to cost');
select is(pg_temp.reserved('llm'), 1000::numeric, 'all of it is reserved');
select is(pg_temp.debt(), 1000, 'to the rate too');

select jobq.spend(:'job', 1, 1500);
select is(pg_temp.spent('llm'), 1500::numeric, 'a report of more is charged');
select is(pg_temp.reserved('llm'), 0::numeric, 'and nothing is reserved any more');
select is(pg_temp.debt(), 1500, 'to the rate too');
select jobq.spend(:'job', 1, 1500);
select is(pg_temp.spent('llm'), 1500::numeric, 'the same report again changes nothing');
select jobq.spend(:'job', 1, 200);
select is(pg_temp.spent('llm'), 200::numeric, 'a report of less gives back');
select is(pg_temp.debt(), 200, 'to the rate too');
select jobq.spend(:'job', 1, 20000);
select is(pg_temp.spent('llm'), 20000::numeric, 'a running job may overrun');
select jobq.spend(:'job', 1, 0);
select is(pg_temp.spent('llm'), 0::numeric, 'one that has cost nothing leaves nothing');

select is(refusal(format(statement, :'job')), expected, statement)
from (
    values
    ('select jobq.spend(%L, 2, 5)', 'JQ003 LEASE_LOST'),
    ('select jobq.spend(gen_random_uuid(), 1, 5)', 'JQ001 JOB_NOT_FOUND'),
    ('select jobq.spend(%L, 1, null)', '22004 NULL_ARGUMENT'),
    ('select jobq.spend(%L, 1, -1)', '22023 INVALID_ARGUMENT'),
    ('select jobq.spend(%L, 1, ''NaN'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.spend(%L, 1, 1e13)', '22023 INVALID_ARGUMENT')
) as e (statement, expected);

-- Between attempts
select jobq.spend(:'job', 1, 70);
select jobq.fail(:'job', 1, 'no', retry_in => '0 s');
select count(*) as claimed from jobq.claim('{llm}', 'w') \gset
select is(pg_temp.spent('llm'), 1070::numeric, 'each attempt is charged by itself');
select is(pg_temp.reserved('llm'), 1000::numeric, 'the report of an attempt ends with it');
select jobq.spend(:'job', 2, 30);
select is(pg_temp.spent('llm'), 100::numeric, 'and reports for itself');
select jobq.complete(:'job', 2);

-- What was not charged
select jobq.enqueue('k', queue => 'late', cost => 1000) from generate_series(1, 2) \g /dev/null
select jobq.enqueue('k', queue => 'late', cost => 1000) as late \gset
select count(*) as claimed from jobq.claim('{late}', 'w') \gset
select jobq.put_budget('queue', 'late', 5000, 'month');
select count(*) as claimed from jobq.claim('{late}', 'w', 9) \gset
select jobq.spend(j.job_id, 1, 0) from jobq.job as j
where j.queue = 'late' and j.state = 'running' order by j.claimed_at limit 1;
select is(pg_temp.spent('late'), 2000::numeric, 'what started before a budget was put gives nothing back to it');

select * from finish();
rollback;
