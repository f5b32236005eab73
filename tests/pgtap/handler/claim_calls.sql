-- What jobq_internal.claim_calls() promises of jobs that limits bind.
begin;
select plan(10);

create schema analytics;
create function analytics.refresh(payload jsonb)
returns jsonb
language sql
return payload;
select jobq.put_kind('refresh', run => 'analytics.refresh');

create function pg_temp.work(queue text)
returns text[]
language sql
as $$
    select coalesce(array_agg(w.state), '{}') from jobq.work(array[queue], 10) as w
$$;

select jobq.put_queue('keys', key_max_running => 1);
select jobq.enqueue('refresh', queue => 'keys', concurrency_key => 'key ' || n % 2)
from generate_series(1, 4) as n;
select jobq.enqueue('other', queue => 'keys', concurrency_key => 'key 2');
select is(
    pg_temp.work('keys'), '{succeeded,succeeded}', 'jobs with a key run, each key one at a time'
);
select is(pg_temp.work('keys'), '{succeeded,succeeded}', 'and the next ones after them');
select is(pg_temp.work('keys'), '{}', 'a kind without a function is left to workers');

select jobq.put_queue('orders', ordered => true);
select jobq.enqueue(kind, queue => 'orders', concurrency_key => 'a')
from unnest('{other,refresh}'::text[]) as k (kind);
select is(pg_temp.work('orders'), '{}', 'and nothing goes before it in an order');

select jobq.put_queue('whole', max_running => 2);
select jobq.enqueue('refresh', queue => 'whole') from generate_series(1, 3);
select is(
    pg_temp.work('whole'), '{succeeded,succeeded}', 'the limit of the whole queue holds'
);

select jobq.put_queue('rated', rate_limit => 1, rate_period => '1 h', rate_burst => 3);
select jobq.enqueue('refresh', queue => 'rated') from generate_series(1, 5);
select is(
    pg_temp.work('rated'), '{succeeded,succeeded,succeeded}', 'so does its rate'
);
select is(pg_temp.work('rated'), '{}', 'from call to call');

select jobq.put_kind('refresh', run => 'analytics.refresh', max_running => 1);
select jobq.enqueue('refresh') from generate_series(1, 3);
select is(pg_temp.work('default'), '{succeeded}', 'and that of the kind');

-- Where no kind is a function, nothing is
update jobq_private.kind set run = null;
select jobq.enqueue('other', queue => 'left', concurrency_key => 'key');
select is(pg_temp.work('left'), '{}', 'where no kind has a function, all is left to workers');
select is(
    (select count(*) from jobq.job as j where j.queue = 'left' and j.state = 'queued'),
    1::bigint, 'and nothing is started'
);

select * from finish();
rollback;
