-- No time is stored that clients cannot read, and no length of time without a bound. Every parameter
-- Needs more than the core.
-- of a public function that takes one stands here, and each other way in.
begin;

create temporary table call (function text, argument text, statement text, allowed text[] default '{}');
insert into call (function, argument, statement) values
('advance_clock', 'by', 'jobq_internal.advance_clock(%s)'),
('preview_cron', 'after', 'jobq_internal.preview_cron(''0 0 1 1 *'', ''UTC'', after => %s)'),
('endpoint_stats', 'period', 'jobq_internal.endpoint_stats(''e'', period => %s)'),
('backfill_schedule', 'since', 'jobq.backfill_schedule(''s'', %s, now())'),
('backfill_schedule', 'until', 'jobq.backfill_schedule(''s'', now() - interval ''2 h'', %s)'),
('configure', 'timeout', 'jobq.configure(timeout => %s)'),
('configure', 'lease', 'jobq.configure(lease => %s)'),
('configure', 'retention', 'jobq.configure(retention => %s)'),
('configure', 'key_retention', 'jobq.configure(key_retention => %s)'),
('create_api_key', 'expires_at',
    'jobq_http.create_api_key(''a'', sha256(''a''), ''a'', ''{read}'', expires_at => %s)'),
('create_schedule', 'every', 'jobq.create_schedule(''a'', ''k'', every => %s)'),
('create_schedule', 'catch_up', 'jobq.create_schedule(''a'', ''k'', every => ''1 h'', catch_up => %s)'),
('create_schedule', 'jitter', 'jobq.create_schedule(''a'', ''k'', every => ''1 h'', jitter => %s)'),
('create_schedule', 'starts_at', 'jobq.create_schedule(''a'', ''k'', every => ''1 h'', starts_at => %s)'),
('create_schedule', 'ends_at', 'jobq.create_schedule(''a'', ''k'', every => ''1 h'', ends_at => %s)'),
('create_schedule', 'timeout', 'jobq.create_schedule(''a'', ''k'', every => ''1 h'', timeout => %s)'),
('enqueue', 'run_at', 'jobq.enqueue(''k'', run_at => %s)'),
('enqueue', 'timeout', 'jobq.enqueue(''k'', timeout => %s)'),
('enqueue', 'expires_at', 'jobq.enqueue(''k'', expires_at => %s)'),
('fail', 'retry_in', 'held as h, lateral jobq.fail(h.job_id, h.attempt, ''x'', retry_in => %s)'),
('hold_key', 'until', 'jobq.hold_key(''q'', ''a'', %s)'),
('next_tick', 'after', 'jobq.next_tick(''0 0 1 1 *'', ''UTC'', %s)'),
('put_endpoint', 'retry_initial_delay', 'jobq.put_endpoint(''e'', ''HTTP'', ''{"url": "http://u"}'',
    retry_initial_delay => %s)'),
('put_endpoint', 'retry_max_delay', 'jobq.put_endpoint(''e'', ''HTTP'', ''{"url": "http://u"}'',
    retry_max_delay => %s)'),
('put_epoch', 'began_at', 'jobq.put_epoch(1, ''{0}'', %s)'),
('put_kind', 'timeout', 'jobq.put_kind(''k'', timeout => %s)'),
('put_kind', 'lease', 'jobq.put_kind(''k'', lease => %s)'),
('put_kind', 'retry_initial_delay', 'jobq.put_kind(''k'', retry_initial_delay => %s)'),
('put_kind', 'retry_max_delay', 'jobq.put_kind(''k'', retry_max_delay => %s)'),
('put_kind', 'rate_period', 'jobq.put_kind(''k'', rate_limit => 1, rate_period => %s)'),
('put_kind', 'dedup_period', 'jobq.put_kind(''k'', dedup => ''debounce'', dedup_period => %s)'),
('put_kind', 'dedup_max_wait', 'jobq.put_kind(''k'', dedup => ''debounce'', dedup_max_wait => %s)'),
('put_kind', 'keep_succeeded', 'jobq.put_kind(''k'', keep_succeeded => %s)'),
('put_kind', 'keep_dead', 'jobq.put_kind(''k'', keep_dead => %s)'),
('put_kind', 'keep_cancelled', 'jobq.put_kind(''k'', keep_cancelled => %s)'),
('put_kind', 'key_rate_period', 'jobq.put_kind(''k'', key_rate_limit => 1, key_rate_period => %s)'),
('put_limit', 'rate_period', 'jobq.put_limit(''q'', ''a'', rate_limit => 1, rate_period => %s)'),
('put_queue', 'timeout', 'jobq.put_queue(''q'', timeout => %s)'),
('put_queue', 'lease', 'jobq.put_queue(''q'', lease => %s)'),
('put_queue', 'rate_period', 'jobq.put_queue(''q'', rate_limit => 1, rate_period => %s)'),
('put_queue', 'key_rate_period', 'jobq.put_queue(''q'', key_rate_limit => 1, key_rate_period => %s)'),
('rate_limited', 'retry_in', 'held as h, lateral jobq.rate_limited(h.job_id, h.attempt, %s)'),
('release', 'run_at', 'held as h, lateral jobq.release(h.job_id, h.attempt, run_at => %s)'),
('release_many', 'run_at', 'held as h, lateral jobq.release_many(array[h.job_id], array[h.attempt], %s)'),
('ask', 'timeout', 'held as h, lateral jobq.ask(h.job_id, h.attempt, ''a'', ''q'', timeout => %s)'),
('wait_for', 'timeout', 'held as h, lateral jobq.wait_for(h.job_id, h.attempt, ''an event'', %s)'),
('wait_any', 'timeout', 'held as h, lateral jobq.wait_any(h.job_id, h.attempt, ''a'', ''{a}'', %s)'),
('read_stream', 'wait', 'held as h, lateral jobq.read_stream(h.job_id, ''a'', wait => %s)'),
('listen_events', 'since', 'jobq.listen_events(since => %s)');
-- For ever.
update call as c set allowed = '{infinity}'
where (c.function, c.argument) in (('create_schedule', 'ends_at'), ('hold_key', 'until'));
-- These only compare: nothing is stored, and no time is refused.
insert into call
select c.function, c.argument, c.statement, '{infinity,-infinity,20000-01-01,4000-01-01 BC}'
from (
    values
    ('list_waits', 'since', 'jobq.list_waits(since => %s)'),
    ('health', 'client_time', 'jobq.health(client_time => %s)'),
    ('page_executions', 'before', 'held as h, lateral jobq_http.page_executions(h.job_id, before => %s)'),
    ('page_jobs', 'created_after', 'jobq_http.page_jobs(created_after => %s)'),
    ('page_jobs', 'created_before', 'jobq_http.page_jobs(created_before => %s)'),
    ('redrive_many', 'since', 'jobq.redrive_many(''{q}'', since => %s)'),
    ('show_jobs', 'created_after', 'jobq_http.show_jobs(created_after => %s)'),
    ('show_jobs', 'created_before', 'jobq_http.show_jobs(created_before => %s)')
) as c (function, argument, statement);
-- The other ways in. They take the same options, and JSON.
create temporary table door (door text, argument text, statement text);
insert into door
select d.door, a.argument, replace(d.statement, 'ARGUMENT', a.argument)
from (
    values
    ('enqueue_many', 'select jobq.enqueue_many(jsonb_build_array(jsonb_build_object(''kind'', ''k'', ''ARGUMENT'', %s)))'),
    ('submit_job', 'select jobq_http.submit_job(jsonb_build_object(''kind'', ''k'', ''ARGUMENT'', %s))'),
    ('insert', 'insert into jobq.job (kind, ARGUMENT) values (''k'', %s)')
) as d (door, statement)
cross join (values ('run_at'), ('expires_at')) as a (argument)
union all values
('change_many', 'run_at', 'select jobq.change_many(jsonb_build_object(''run_at'', %s), queue => ''q'', dry_run => false)'),
('update', 'run_at', 'update jobq.job set state = ''queued'', run_at = %s where state = ''running''');

create temporary view parameter as
select f.proname::text as function, t.name as argument, t.type::regtype::text as type
from pg_catalog.pg_proc as f
cross join lateral unnest(f.proargnames, f.proargtypes::oid[]) as t (name, type)
where f.pronamespace::regnamespace::text in ('jobq', 'jobq_http', 'jobq_internal')
and t.type in ('timestamptz'::regtype, 'interval'::regtype);

select plan(1 + 4 * (select count(*)::integer from door) + (
    select sum(case p.type when 'interval' then 2 else 4 end)::integer
    from parameter as p
));

create function pg_temp.outcome(statement text)
returns text
language plpgsql
as $$
begin
    execute statement;
    return 'ok';
exception
    when others then
        return sqlstate;
end
$$;

select jobq.put_endpoint('e', 'HTTP', '{"url": "http://u"}');
select jobq.put_shard(0, 'host=a');
select jobq.create_schedule('s', 'k', every => '1 h') \g /dev/null
select jobq.enqueue('k', queue => 'q') from generate_series(1, 2);
create temporary table held as select c.* from jobq.claim('{q}', 'w', 1) as c;

select set_eq(
    'select p.function, p.argument from parameter as p',
    'select c.function, c.argument from call as c',
    'each parameter that takes a time is tried'
);
select is(
    pg_temp.outcome(format('select * from ' || c.statement, format('%s %L', p.type, t.value))),
    case when t.value = any (c.allowed) then 'ok' else '22023' end,
    format('%s(%s => %s)', c.function, c.argument, t.value)
)
from call as c
join parameter as p on p.function = c.function and p.argument = c.argument
cross join lateral unnest(case p.type
    when 'interval' then '{90000 years,-1 ms}'::text[]
    else '{infinity,-infinity,20000-01-01,4000-01-01 BC}'
end) as t (value);
select is(
    pg_temp.outcome(format(d.statement, format('timestamptz %L', t.value))),
    case d.door when 'update' then '23514' else '22023' end,
    format('%s: %s = %s', d.door, d.argument, t.value)
)
from door as d
cross join unnest('{infinity,-infinity,20000-01-01,4000-01-01 BC}'::text[]) as t (value);

select * from finish();
rollback;
