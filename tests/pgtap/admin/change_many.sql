-- What jobq.change_many() promises.
begin;
select plan(70);

create temporary table made as
select n, jobq.enqueue(
    case n when 4 then 'other' else 'work' end, to_jsonb(n),
    queue => case n when 5 then 'aside' else 'q' end,
    run_at => now() + interval '1 h', metadata => jsonb_build_object('tenant', n % 2)
) as job_id
from generate_series(1, 6) as n;
create function pg_temp.id(n integer)
returns uuid
language sql
return (select m.job_id from made as m where m.n = id.n);
create function pg_temp.numbers(arguments text)
returns integer[]
language plpgsql
as $$
declare
    _found integer[];
begin
    execute format(
        'select array_agg(m.n order by m.n) from jobq.change_many(%s) as c (job_id)
        join made as m using (job_id)', arguments
    ) into _found;
    return _found;
end
$$;

-- What is chosen
select is(pg_temp.numbers('''{"priority": 1}'', dry_run => true, ' || a.filter), a.numbers, a.claim)
from (
    values
    ('queue => ''q''', '{1,2,3,4,6}'::integer[], 'a queue'),
    ('kind => ''other''', '{4}', 'a kind'),
    ('metadata => ''{"tenant": 0}''', '{2,4,6}', 'what metadata contains'),
    ('queue => ''q'', kind => ''work'', metadata => ''{"tenant": 0}''', '{2,6}', 'all of them'),
    ('queue => ''q'', max_jobs => 2', '{1,2}', 'the oldest, no more than max_jobs'),
    ('job_ids => array[pg_temp.id(5), pg_temp.id(1)]', '{1,5}', 'jobs by their ids'),
    ('job_ids => array[pg_temp.id(5), pg_temp.id(1)], queue => ''q''', '{1}', 'ids and a filter')
) as a (filter, numbers, claim);
select is(
    (select count(*) from jobq.job as j where j.priority <> 0), 0::bigint,
    'a dry run changes nothing'
);
select is(
    (select count(*) from jobq.audit as a where a.action like 'change%'), 0::bigint,
    'nor is it noted'
);

-- What changes
select is(
    pg_temp.numbers(
        '''{"run_at": "now", "priority": 7, "queue": "fast", "timeout": "3 s"}'',
        kind => ''other'', reason => ''urgent'''
    ),
    '{4}', 'what changed is returned'
);
select results_eq(
    format('select j.run_at <= clock_timestamp(), j.priority::integer, j.queue, j.timeout,
        j.payload from jobq.job as j where j.job_id = %L', pg_temp.id(4)),
    $$values (true, 7, 'fast', interval '3 s', '4'::jsonb)$$,
    'the job is due, in its new queue, with its new priority and timeout'
);
select results_eq(
    'select a.action, a.subject, a.reason from jobq.audit as a where a.action like ''change%''',
    format('values (''change queue, run_at, timeout, priority'', %L, ''urgent'')', pg_temp.id(4)),
    'the audit names the job, the members and the reason'
);
select is(
    (select c.job_id from jobq.claim('{fast}', 'w', 10) as c), pg_temp.id(4),
    'a worker of the new queue gets it'
);

-- Payloads
select jobq.put_kind('work', payload_schema => '{"type": "integer"}');
select is(
    pg_temp.numbers('''{"payload": 42}'', array[pg_temp.id(1)]'), '{1}',
    'the payload of a job that never ran can be amended'
);
select is((jobq.get_job(pg_temp.id(1))).payload, '42', 'and is what was given');
select jobq.change_many('{"run_at": "now"}', array[pg_temp.id(2)]);
select jobq.claim_job(pg_temp.id(2), 'w');
select jobq.release(pg_temp.id(2), 1);
select throws_ok(
    format('update jobq_private.job set payload = ''1'' where job_id = %L', id), 'JQ002', null,
    'whoever writes, ' || claim
)
from (
    values
    (pg_temp.id(2), 'the payload of a job that was released stays'),
    (pg_temp.id(4), 'the payload of a job that runs stays')
) as v (id, claim);
select throws_ok(
    format(
        'update jobq_private.job set payload = ''1'', state = ''cancelled'' where job_id = %L',
        pg_temp.id(3)
    ),
    'JQ002', null, 'no change of state takes a payload with it'
);

-- Concurrency keys in payloads
select jobq.put_kind('keyed', concurrency_key => '{customer}', queue => 'keyed');
select jobq.enqueue('keyed', '{"customer": 1}') as keyed, jobq.enqueue('keyed', '{"n": 1}') as unkeyed \gset
select jobq.enqueue('keyed', '{"customer": 1}', concurrency_key => 'own') as own \gset
select is(
    refusal(format('select jobq.change_many(%L, array[%L::uuid])', v.changes, v.id)),
    v.refusal, v.claim
)
from (
    values
    ('{"payload": {"customer": 2}}', :'keyed', 'JQ002 IMMUTABLE', 'a payload with another key is refused'),
    ('{"payload": {}}', :'keyed', 'JQ002 IMMUTABLE', 'as is one without'),
    ('{"payload": {"customer": 1, "n": 2}}', :'keyed', 'none', 'with the same it is taken'),
    ('{"payload": {"customer": 2}}', :'unkeyed', 'JQ002 IMMUTABLE', 'nor is a key added'),
    ('{"payload": {"n": 2}}', :'unkeyed', 'none', 'where there was none'),
    ('{"payload": {"customer": 2}}', :'own', 'none', 'a key that was given by itself stays, too')
) as v (changes, id, refusal, claim);

-- Costs in payloads
select jobq.put_kind('priced', cost => '{tokens}', queue => 'priced');
select jobq.enqueue('priced', '{"tokens": 5}') as five, jobq.enqueue('priced') as one,
    jobq.enqueue('priced', '{"tokens": 5}', cost => 7) as seven \gset
select jobq.change_many('{"payload": {"tokens": 50}}', queue => 'priced');
select jobq.change_many('{"payload": {}}', array[:'one'::uuid]);
select results_eq(
    $$select j.cost from jobq.job as j where j.kind = 'priced' order by j.job_id$$,
    $$values (50::numeric), (1), (7)$$,
    'the cost changes with the payload that contains it, and one that was given stays'
);

-- A job that waits for an event
create temporary table waiting as select jobq.enqueue('waits', queue => 'w') as job_id;
select jobq.claim('{w}', 'w', 1);
select outcome from waiting, jobq.wait_for(job_id, 1, 'e', '10 min');
select jobq.change_many(
    jsonb_build_object('run_at', now() + interval '1 h'), queue => 'w'
);
select cmp_ok(
    (select (jobq.get_job(job_id)).run_at from waiting), '<=', now() + interval '11 min',
    'a job that waits for an event is due at its deadline at the latest'
);
select is(
    refusal($$select jobq.change_many(jsonb_build_object('expires_at', now() + '5 min'), queue => 'w')$$),
    'none', 'it can expire before that'
);
select is(
    refusal($$select jobq.change_many(jsonb_build_object('run_at', now() + '6 min'), queue => 'w')$$),
    '22023 INVALID_ARGUMENT', 'but not be due by itself after it expires'
);
select jobq.change_many('{"run_at": "now"}', queue => 'w');
select jobq.claim('{w}', 'w', 1);
select is(
    (select w.outcome from waiting, jobq.wait_for(job_id, 2, 'e') as w), 'waiting',
    'one that is woken early goes on waiting'
);

-- What is refused
select jobq.put_queue('full', max_depth => 1);
select is(
    refusal('select jobq.change_many(' || a.arguments || ')'), a.refusal,
    format('change_many(%s): %s', a.arguments, a.refusal)
)
from (
    values
    ('''{"priority": 1}''', '22023 INVALID_ARGUMENT'),
    ('''{"kind": "x"}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('null, queue => ''q''', '22004 NULL_ARGUMENT'),
    ('''{"priority": 40000}'', queue => ''nothing''', '22023 INVALID_ARGUMENT'),
    ('''{"priority": 1}'', array[gen_random_uuid()]', 'JQ001 JOB_NOT_FOUND'),
    ('''{"priority": 1}'', array[pg_temp.id(4)]', 'JQ002 ILLEGAL_STATE'),
    ('''{"payload": 1}'', array[pg_temp.id(2)]', 'JQ002 IMMUTABLE'),
    ('''{"payload": 1}'', array[pg_temp.id(2)], dry_run => true', 'JQ002 IMMUTABLE'),
    ('''{"payload": 1}'', queue => ''q'', dry_run => true', 'JQ002 IMMUTABLE'),
    ('''{"queue": 5}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"queue": {"a": [1]}}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"priority": "5"}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"timeout": 30}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"run_at": 1}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"run_at": "soon"}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"priority": 99999999999}'', queue => ''q''', '22023 INVALID_ARGUMENT'),
    ('''{"priority": 5, "payload": null}'', queue => ''q'', dry_run => true', 'none'),
    ('''{"payload": "text"}'', array[pg_temp.id(1)]', 'JQ006 PAYLOAD_INVALID'),
    ('''{"queue": "full"}'', queue => ''q''', 'JQ010 QUEUE_FULL'),
    ('''{"priority": 1}'', array[pg_temp.id(1), pg_temp.id(2)], max_jobs => 1', '22023 INVALID_ARGUMENT'),
    ('''{"priority": 1}'', queue => ''q'', dry_run => null', '22004 NULL_ARGUMENT')
) as a (arguments, refusal);

-- More attempts for a job that has failed
select jobq.enqueue('tries', queue => 'tries', max_attempts => 2) as tries \gset
select from jobq.claim('{tries}', 'w');
select jobq.fail(:'tries', 1, 'boom', retry_in => '0 s');
select is(
    refusal(format(
        'select jobq.change_many(jsonb_build_object(''max_attempts'', %s), array[%L::uuid], dry_run => %L)',
        v.attempts, :'tries', v.dry
    )),
    v.refusal, v.claim
)
from (
    values
    ('1', false, 'JQ002 ILLEGAL_STATE', 'a job keeps an attempt while it waits'),
    ('1', true, 'JQ002 ILLEGAL_STATE', 'a dry run refuses less, too'),
    ('0', false, '22023 INVALID_ARGUMENT', 'no job has less than one'),
    ('''3''', false, '22023 INVALID_ARGUMENT', 'the number is no text'),
    ('3', false, 'none', 'a job that waits for its next attempt can get more')
) as v (attempts, dry, refusal, claim);
select from jobq.claim('{tries}', 'w');
select is(jobq.fail(:'tries', 2, 'boom', retry_in => '0 s'), 'retrying', 'and is tried again where it had died');

-- What expires, what changes nothing, and what chooses nothing
select jobq.enqueue('ends', queue => 'ends', expires_at => now() + interval '1 h') as ends \gset
select is(
    refusal(format('select jobq.change_many(%L, array[%L::uuid], dry_run => %L)', v.changes, :'ends', v.dry)),
    v.refusal, v.claim
)
from (
    values
    (jsonb_build_object('run_at', now() + interval '2 h'), false, '22023 INVALID_ARGUMENT',
        'a job is not put off past its expiry'),
    (jsonb_build_object('run_at', now() + interval '2 h'), true, '22023 INVALID_ARGUMENT',
        'which a dry run says, too'),
    (jsonb_build_object('run_at', now() + interval '2 h', 'expires_at', now() + interval '3 h'),
        false, 'none', 'unless that moves as well'),
    (jsonb_build_object('expires_at', now() + interval '1 h'), false, '22023 INVALID_ARGUMENT',
        'nor does it come to expire before it is due'),
    ('{"run_at": "now"}', false, 'none', 'it may run sooner'),
    ('{"priority": null}', false, '22023 INVALID_ARGUMENT', 'null alone changes nothing')
) as v (changes, dry, refusal, claim);
select is(
    refusal(format('select jobq.%s metadata => ''{}'')', v.call)), '22023 INVALID_ARGUMENT',
    'empty metadata chooses no jobs: ' || v.call
)
from (values ('change_many(''{"priority": 1}'','), ('delete_many('), ('cancel_many(')) as v (call);
select is(
    refusal(format('select jobq.delete_many(queue => ''q'', metadata => %L)', v.metadata)),
    '22023 INVALID_ARGUMENT', 'nor does metadata that is no object: ' || v.metadata
)
from (values ('5'), ('"x"'), ('[]'), ('null')) as v (metadata);

select * from finish();
rollback;
