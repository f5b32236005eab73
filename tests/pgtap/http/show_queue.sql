-- What jobq_http.show_queue() promises: what a queue allows, what is held, and who holds keys.
begin;
select plan(19);

select is(jobq_http.show_queue('none') ->> 'is_declared', 'false', 'a queue that nobody declared');
select is((jobq_http.show_queue('none') -> 'holds')::text, '[]', 'holds no key');

select jobq.put_queue('keyed', key_max_running => 2, max_running => 9);
select jobq.put_limit('keyed', 'a', 1);
select jobq.enqueue('k', queue => 'keyed', concurrency_key => key)
from unnest('{a,a,b,c}'::text[]) as key;
select jobq.hold_key('keyed', 'c', now() + interval '1 h', 'asked to wait');
select jobq.hold_key('keyed', 'idle', 'infinity');
select jobq.hold_key('keyed', 'past', now() - interval '1 h');
select from jobq.claim('{keyed}', 'w', 5);
create temporary table shown as select jobq_http.show_queue('keyed', 'a') as d;

select is(d ->> 'max_running', '9', 'the limit of the queue') from shown;
select is(d ->> 'key_max_running', '2', 'and of each key') from shown;
select is(d -> 'limits' -> 0 ->> 'max_running', '1', 'and of single keys') from shown;
select results_eq(
    $$ select h ->> 'concurrency_key', h ->> 'reason', h ->> 'until' is null
    from shown, json_array_elements(d -> 'holds') as h $$,
    $$ values ('idle', null, true), ('c', 'asked to wait', false) $$,
    'keys that are held, with and without jobs, the longest first'
);
select results_eq(
    $$ select r ->> 'concurrency_key', r ->> 'worker', r ->> 'kind'
    from shown, json_array_elements(d -> 'runners') as r order by 1 $$,
    $$ values ('a', 'w', 'k'), ('b', 'w', 'k') $$, 'who holds which key'
);
select is(d -> 'key' ->> 'max_running', '1', 'a key has its own limit') from shown;
select is(d -> 'key' ->> 'waiting', '1', 'what waits for it') from shown;
select is(json_array_length(d -> 'key' -> 'runners'), 1, 'and who holds it') from shown;
select is(d -> 'key' ->> 'is_held', 'false', 'it is not held by anybody') from shown;
select is(
    jobq_http.show_queue('keyed', 'c') -> 'key' ->> 'hold_reason', 'asked to wait',
    'a held key says why'
);
select jobq.release_key('keyed', 'c');
select is(json_array_length(jobq_http.show_queue('keyed') -> 'holds'), 1, 'until it is released');
select is(json_array_length(jobq_http.show_queue('keyed', max_rows => 1) -> 'runners'), 1,
    'no more than asked for');

-- Kinds with limits for each key
select jobq.put_kind('sorted', queue => 'elsewhere', ordered => true);
select jobq.put_kind('shot', queue => 'keyed', key_rate_limit => 5, key_max_running => 3);
select jobq.enqueue(kind, queue => queue, concurrency_key => 'a')
from (
    values ('shot', 'keyed'), ('sorted', 'keyed'), ('sorted', 'keyed'), ('sorted', 'elsewhere')
) as j (kind, queue);
select from jobq.claim('{elsewhere}', 'other', 1);
update shown set d = jobq_http.show_queue('keyed', 'a');
select is(
    d -> 'key' ->> 'kinds',
    '[{"kind":"shot","max_running":3,"rate_limit":5,"rate_period_ms":null,"rate_burst":null}, '
    || E'\n {"kind":"sorted","max_running":1,"rate_limit":null,"rate_period_ms":null,"rate_burst":null}]',
    'kinds have limits for each key'
) from shown;
select is(d -> 'key' ->> 'waiting', '4', 'whose jobs wait too') from shown;
select is(
    array(
        select r ->> 'kind' from json_array_elements(d -> 'key' -> 'runners') as r order by 1
    ), '{k,sorted}', 'and hold the key, in other queues too'
) from shown;
select throws_ok($$ select jobq_http.show_queue('') $$, '22023', null, 'a queue has a name');
select throws_ok('select jobq_http.show_queue(null)', '22004', null, 'a queue is needed');

select * from finish();
rollback;
