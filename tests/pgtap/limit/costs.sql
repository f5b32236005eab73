-- What jobs cost, the rates that count it, and what workers report, by one session.
begin;
select plan(40);

create function pg_temp.claimed(queue text, jobs integer default 9)
returns integer
language sql
as $$
    select count(*)::integer from jobq.claim(array[queue], 'w', jobs)
$$;

create function pg_temp.cost_of(of_job uuid)
returns numeric
language plpgsql
as $$
begin
    return (jobq.get_job(of_job)).cost;
end
$$;

-- Time passes: what was charged so long ago is paid for.
create function pg_temp.pass(span interval)
returns void
language sql
as $$
    update jobq_private.limit_state set charged_at = charged_at - span, charged_since = charged_since - span;
    update jobq_private.waiting_key set open_at = open_at - span where open_at > '-infinity';
$$;

-- What a job costs
select jobq.put_kind('llm', cost => '{tokens}', queue => 'llm');
select is(
    pg_temp.cost_of(jobq.enqueue('llm', payload, cost => given)), expected, why
)
from (
    values
    ('{"tokens": 2500}'::jsonb, null, 2500, 'the cost is read from the payload'),
    ('{"tokens": 2.5}', null, 2.5, 'it may be a fraction'),
    ('{"tokens": 0}', null, 0, 'or nothing'),
    ('{"tokens": 2500}', 3, 3, 'an argument goes before the payload'),
    ('{"tokens": "many"}', 3, 3, 'which is then not looked at'),
    ('{"tokens": null}', null, 1, 'null costs 1'),
    ('{}', null, 1, 'as does a payload without that member')
) as e (payload, given, expected, why);
select is(
    (
        select array_agg(j.cost order by e.ordinal)
        from jobq.enqueue_many(
            '[{"kind": "llm", "cost": 7}, {"kind": "llm", "payload": {"tokens": 8}}, {"kind": "other"}]'
        ) as e
        cross join lateral pg_temp.cost_of(e.job_id) as j (cost)
    ),
    '{7,8,1}', 'many jobs have each their own'
);
select is(
    pg_temp.cost_of(jobq.enqueue('other', cost => 12)), 12::numeric, 'a kind without a path takes the argument'
);
select is(refusal(format('select jobq.%s', statement)), '22023 INVALID_ARGUMENT', statement)
from unnest(array[
    'enqueue(''k'', cost => -1)', 'enqueue(''k'', cost => ''NaN'')', 'enqueue(''k'', cost => 1e13)',
    'enqueue_many(''[{"kind": "k", "cost": -1}]'')',
    'enqueue_many(''[{"kind": "k", "cost": "much"}]'')', 'put_kind(''k'', cost => ''{}'')',
    'put_kind(''k'', cost => ''{t,o,k,e,n,s}'')'
]) as statement;
select is(
    refusal(format('select jobq.enqueue(''llm'', %L)', payload)), 'JQ006 PAYLOAD_INVALID',
    'refused: ' || payload
)
from unnest(array[
    '{"tokens": "9"}', '{"tokens": -1}', '{"tokens": {}}', '{"tokens": true}', '{"tokens": 1e30}'
]) as payload;
select from jobq.claim_job((select j.job_id from jobq_private.job as j limit 1), 'w');
select is(
    refusal('update jobq_private.job set cost = 99'), 'JQ002 IMMUTABLE',
    'the cost of a job that has run never changes'
);
select is(
    refusal('insert into jobq_private.job (job_id, kind, queue, max_attempts, timeout, lease, cost)
        values (gen_random_uuid(), ''k'', ''q'', 1, ''1 s'', ''1 s'', -1)'),
    '23514 job_cost_check', 'nor is it negative, whoever writes'
);
delete from jobq_private.job;

-- Rates count cost: of a queue, a kind, a key, each jobs of 60 of 600 an hour
select jobq.put_queue('of queue', rate_limit => 600, rate_period => '1 h', rate_burst => 100);
select jobq.put_kind('of kind', rate_limit => 600, rate_period => '1 h', rate_burst => 100);
select jobq.put_queue('of key', key_rate_limit => 600, key_rate_period => '1 h', key_rate_burst => 100);
select jobq.put_kind('of kind key', key_rate_limit => 600, key_rate_period => '1 h', key_rate_burst => 100);
select count(jobq.enqueue(
    case when q ~ 'kind' then q else 'plain' end, queue => q, cost => 60,
    concurrency_key => case when q ~ 'key' then 'a' end
)) as enqueued
from unnest('{of queue,of kind,of key,of kind key}'::text[]) as q, generate_series(1, 5) \g /dev/null
select is(pg_temp.claimed(q), 2, q || ': jobs start while anything is left of the burst')
from unnest('{of queue,of kind,of key,of kind key}'::text[]) as q;
select pg_temp.pass('1 min');
select is(pg_temp.claimed(q), 0, q || ': and wait until time has paid for them')
from unnest('{of queue,of kind,of key,of kind key}'::text[]) as q;
select ok(
    jobq.due_in(array[q]) between '10 s' and '66 s',
    q || ': a worker sleeps until then'
)
from unnest('{of queue,of kind,of key,of kind key}'::text[]) as q;
select pg_temp.pass('2 min');
select is(pg_temp.claimed(q), 1, q || ': then the next one starts')
from unnest('{of queue,of kind,of key,of kind key}'::text[]) as q;

-- By hand
select is(
    refusal('update jobq_private.job set state = ''running''
        where state = ''queued'' and queue = ''of queue'''),
    'JQ011 LIMIT_REACHED', 'nobody starts a job above a rate'
);

select * from finish();
rollback;
