-- What the dedup key of a kind promises: uniqueness by the payload.
-- Needs more than the core.
begin;
select plan(21);

select jobq.put_kind('sync', dedup_key => '{user_id}');
select jobq.enqueue('sync', '{"user_id": 7, "n": 1}') as first \gset
select is(jobq.enqueue('sync', '{"user_id": 7, "n": 2}'), :'first', 'a job with the same member stands for the second one');
select isnt(jobq.enqueue('sync', '{"user_id": 8}'), :'first', 'one with another member is new');
select is((jobq.get_job(:'first')).dedup_key, '7', 'the job has the member as its key');
select isnt(jobq.enqueue('sync'), jobq.enqueue('sync'), 'jobs without the member have no key');
select isnt(
    jobq.enqueue('sync', '{"user_id": null}'), jobq.enqueue('sync', '{"user_id": null}'), 'nor have those with null'
);
select isnt(jobq.enqueue('sync', '{"user_id": 7}', dedup_key => 'own'), :'first', 'a call may give its own key');
select isnt(jobq.enqueue('sync', '{"user_id": 7}', dedup => 'enqueue'), :'first', 'and its own strategy');
select isnt(
    jobq.enqueue('sync', '{"user_id": 7}', dedup => 'replace'), :'first', 'also one that needs a key'
) as replaced;
select is((jobq.get_job(:'first')).state::text, 'cancelled', 'which is then that of the payload');
select results_eq(
    $$ select created from jobq.enqueue_many('[
        {"kind": "sync", "payload": {"user_id": 20}}, {"kind": "sync", "payload": {"user_id": 21}},
        {"kind": "sync", "payload": {"user_id": 20}}
    ]') order by ordinal $$,
    'values (true), (true), (false)', 'batches are looked at in the same way'
);
select from jobq.claim('{default}', 'w', 100);
select isnt(jobq.enqueue('sync', '{"user_id": 21}'), null, 'skip returns also a running job');
select job_id as settled from jobq.job where dedup_key = '21' \gset
select jobq.complete(:'settled', 1);
select isnt(jobq.enqueue('sync', '{"user_id": 21}'), :'settled', 'a finished one is in nobody''s way');

-- Several paths, and the whole payload
select jobq.put_kind('pair', dedup_key => '{{a,NULL},{b,c}}');
select jobq.enqueue('pair', '{"a": 1, "b": {"c": 2}}') as pair \gset
select results_eq(
    format('select jobq.enqueue(''pair'', v) = %L from unnest(array[
        ''{"a": 1, "b": {"c": 2}, "d": 3}'', ''{"a": 1, "b": {"c": 3}}'', ''{"a": 1}'', ''{}''
    ]::jsonb[]) as v', :'pair'),
    'values (true), (false), (false), (false)', 'a key of several members is the same if all are'
);
select jobq.put_kind('whole', dedup_key => '{}');
select jobq.enqueue('whole', '{"a": 1, "b": 2}') as whole \gset
select is(jobq.enqueue('whole', '{"b": 2, "a": 1}'), :'whole', 'the whole payload can be the key');
select jobq.enqueue('whole', jsonb_build_object('a', repeat('x', 9000))) as long \gset
select is(
    jobq.enqueue('whole', jsonb_build_object('a', repeat('x', 9000))), :'long', 'however long it is'
);

-- What is refused
select jobq.enqueue('sync', '{"user_id": 30}', run_at => now() + interval '1 h') as later \gset
select is(
    refusal(format('select jobq.change_many(%L, array[%L::uuid])', v.changes, :'later')), v.refusal, v.claim
)
from (
    values
    ('{"payload": {"user_id": 31}}', 'JQ002 IMMUTABLE', 'a new payload does not change the key'),
    ('{"payload": {"user_id": 30, "n": 1}}', 'none', 'other members of it may change')
) as v (changes, refusal, claim);
select is(refusal('select jobq.put_kind(''k'', ' || v.arguments || ')'), v.refusal, v.arguments)
from (
    values
    ('dedup_key => ''{a,NULL}''', '22023 INVALID_ARGUMENT'),
    ('dedup_key => ''{u,s,e,r}''', '22023 INVALID_ARGUMENT'),
    ('dedup_key => ''{b}'', payload_schema => ''{"properties": {"a": {}}, "additionalProperties": false}''',
        '22023 INVALID_ARGUMENT'),
    ('dedup_key => ''{{a},{b}}'', payload_schema => ''{"properties": {"a": {}, "b": {}}, "additionalProperties": false}''',
        'none')
) as v (arguments, refusal);

select * from finish();
rollback;
