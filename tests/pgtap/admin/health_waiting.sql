-- Whatever keeps a due job from starting for five minutes is named by health(), and by explain().
-- A lock has its test in test_races.py.
begin;

create temporary table stop (name text, setting text, event text, reason text, finding text);
insert into stop values
('a pause of the queue', '', $$ select jobq.pause_queue('q', 'audit') $$, 'paused', 'queue q since .*: audit'),
('a pause of the endpoint', $$ select jobq.put_endpoint('k', 'HTTP', '{"url": "http://u"}') $$, $$
    select jobq.pause_endpoint('k', 'deaf');
    select jobq.claim('{q}', 'w', 1);
    update jobq_private.parked_job set run_at = run_at - interval '1 h'
$$, 'paused', 'k is paused since .*: deaf'),
('a hold of the key', '', $$ select jobq.hold_key('q', 'a', 'infinity') $$, 'held',
    'held until it is released'),
('a hold until a time', '', $$ select jobq.hold_key('q', 'a', now() + interval '1 h') $$, 'held',
    'held until \d{4}-'),
('a limit of the queue', $$ select jobq.put_queue('q', max_running => 1) $$, 'claim', 'queue_busy',
    ': 1 at once, and so many run'),
('a rate of the queue', $$ select jobq.put_queue('q', rate_limit => 1, rate_period => '1 day') $$, 'claim',
    'rate_limited', 'the next starts at'),
('a limit of the kind', $$ select jobq.put_kind('k', max_running => 1) $$, 'claim', 'kind_busy',
    ': 1 at once, and so many run'),
('a rate of the kind', $$ select jobq.put_kind('k', rate_limit => 1, rate_period => '1 day') $$, 'claim',
    'rate_limited', 'the next starts at'),
('a limit of each key of the queue', $$ select jobq.put_queue('q', key_max_running => 1) $$, 'claim',
    'key_busy', 'so many run: job .* on w'),
('a limit of each key of the kind', $$ select jobq.put_kind('k', key_max_running => 1) $$, 'claim',
    'key_busy', 'so many run: job .* on w'),
('a limit of one key', $$ select jobq.put_limit('q', 'a', max_running => 1) $$, 'claim', 'key_busy',
    'so many run: job .* on w'),
('a rate of one key', $$ select jobq.put_limit('q', 'a', rate_limit => 1, rate_period => '1 day') $$, 'claim',
    'rate_limited', 'the next starts at'),
('the order of a key', $$ select jobq.put_kind('k', ordered => true) $$, 'claim', 'ordered_behind',
    'job .* goes first'),
('a dead job of an ordered key', $$ select jobq.put_kind('k', ordered => true, on_dead => 'hold') $$, $$
    select jobq.fail(c.job_id, c.attempt, 'x', retryable => false) from jobq.claim('{q}', 'w', 1) as c
$$, 'held', 'held until it is released'),
('an event', '', $$
    select jobq.wait_for(c.job_id, c.attempt, 'an event', '1 h') from jobq.claim('{q}', 'w', 2) as c
$$, 'event', null),
('no worker', '', '', 'no_worker', 'no worker of queue q was seen'),
('a worker that hangs', '', $$ select jobq.heartbeat('w', '{}', '{}', '{q}', stuck => 2) $$, 'slots_lost',
    'handlers that hang occupy 2 slots of worker w'),
('a function that is missing', $$
    create function public.run_k(payload jsonb) returns jsonb language sql as 'select payload';
    select jobq.put_kind('k', run => 'public.run_k')
$$, 'drop function public.run_k(jsonb)', 'no_function', 'kind k needs');
update stop set event = $$ select jobq.claim('{q}', 'w', 1) $$ where event = 'claim';

-- Two jobs of one key that have been due for an hour, after a setting and an event: what health() says, and
-- the reasons of explain() for those that wait. All of it is taken back.
create function pg_temp.told(setting text, event text, out finding text, out reasons text[])
language plpgsql
as $$
begin
    execute told.setting;
    perform jobq.enqueue('k', queue => 'q', concurrency_key => 'a') from generate_series(1, 2);
    execute told.event;
    set local session_replication_role = replica;
    update jobq_private.job set run_at = now() - interval '1 h', due_at = due_at - interval '1 h'
    where state in ('queued', 'retrying') and run_at <= now();
    set local session_replication_role = origin;
    finding := (
        select string_agg(h.finding, '; ') from jobq.health() as h
        where h.subject in ('waiting', 'endpoints') and not h.is_ok
    );
    reasons := array(
        select distinct e.reason
        from jobq_private.job as j
        cross join lateral jobq.explain(j.job_id) as e
        where j.state in ('queued', 'retrying')
    );
    raise sqlstate 'TEST0';
exception
    when sqlstate 'TEST0' then
        null;
end
$$;

select plan(2 * (select count(*)::integer from stop));
create temporary table told as
select s.*, t.finding as said, t.reasons from stop as s, pg_temp.told(s.setting, s.event) as t;
select case
    when t.finding is null then ok(t.said is null, t.name || ' is what it waits for: health() is silent')
    else matches(t.said, t.finding, t.name || ': health() says so')
end
from told as t;
select ok(t.reason = any (t.reasons), format('%s: explain() says so: %s', t.name, t.reasons))
from told as t;

select * from finish();
rollback;
