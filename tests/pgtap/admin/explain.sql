-- What jobq.explain() promises.
begin;
select plan(32);

create function pg_temp.reasons(job_id uuid)
returns text[]
language sql
as $$
select array_agg(e.reason order by e.ordinality)
from jobq.explain(reasons.job_id) with ordinality as e
$$;
create function pg_temp.says(job_id uuid, reason text)
returns text
language sql
as 'select e.explanation from jobq.explain(says.job_id) as e
where e.reason = says.reason';

select jobq.enqueue('work', queue => 'q') as one,
    jobq.enqueue('work', queue => 'q') as two,
    jobq.enqueue('work', queue => 'q', priority => 9) as urgent,
    jobq.enqueue('work', queue => 'q', run_at => now() + interval '1 h') as later \gset
select is(
    pg_temp.reasons(:'one'), '{no_worker,waiting}',
    'nobody serves its queue, and it waits'
);
select matches(pg_temp.says(:'one', 'no_worker'), 'queue q', 'it says which queue');
select from jobq.heartbeat('w', '{}', '{}', '{other}');
select is(
    pg_temp.reasons(:'one'), '{no_worker,waiting}',
    'a worker of another queue does not help'
);
select from jobq.heartbeat('w', '{}', '{}', '{other,q}');
select is(
    pg_temp.reasons(:'one'), '{waiting}', 'a live worker serves its queue, and it waits'
);
select matches(
    pg_temp.says(:'one', 'waiting'), '^1 job is ahead of it in queue q', 'behind the urgent one'
);
select matches(
    pg_temp.says(:'two', 'waiting'), '^2 jobs are ahead of it in queue q', 'each behind the last'
);
select matches(
    pg_temp.says(:'urgent', 'waiting'), '^no job is ahead of it in queue q', 'urgent behind none'
);
update jobq_private.worker set seen_at = now() - interval '61 s';
select is(
    pg_temp.reasons(:'one'), '{no_worker,waiting}',
    'a worker of a minute ago does not count'
);
select is(pg_temp.reasons(:'later'), '{scheduled}', 'its time has not come');
select jobq.pause_queue('q', 'maintenance');
select is(
    pg_temp.reasons(:'later'), '{paused,scheduled}', 'every reason that holds is given'
);
select matches(pg_temp.says(:'one', 'paused'), 'maintenance', 'a pause says why');
select jobq.resume_queue('q');

select from jobq.claim_job(:'one', 'w9');
select is(pg_temp.reasons(:'one'), '{running}', 'it runs already');
select matches(
    pg_temp.says(:'one', 'running'), 'attempt 1 on w9 .* until', 'where, and until when'
);
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 s'
where job_id = :'one';
set local session_replication_role = origin;
select matches(
    pg_temp.says(:'one', 'running'), 'expired', 'or that its lease has expired'
);
select jobq.fail(:'one', 1, 'boom', 'E9', retry_in => '1 h');
select is(pg_temp.reasons(:'one'), '{backoff}', 'it waits to be tried again');
update jobq_private.job set expires_at = now() + interval '1 min' where job_id = :'one';
select matches(
    pg_temp.says(:'one', 'backoff'), 'expires before, at', 'or ends before, where it expires'
);
update jobq_private.job set run_at = now() where job_id = :'one';
select from jobq.claim_job(:'one', 'w');
select jobq.fail(:'one', 2, 'boom', 'E9', retryable => false);
select is(pg_temp.reasons(:'one'), '{finished}', 'it has ended');
select matches(
    pg_temp.says(:'one', 'finished'), '^dead at .* 2 attempts: E9 boom$',
    'as what, and why'
);
select jobq.redrive(:'one');
select attempt as third from jobq.claim_job(:'one', 'w') \gset
select jobq.complete(:'one', :third);
select matches(
    pg_temp.says(:'one', 'finished'), '^succeeded at .* 1 attempt$',
    'an error of an earlier attempt is not why it has succeeded'
);
select jobq.cancel(:'two');
select matches(
    pg_temp.says(:'two', 'finished'), '^cancelled at .* 0 attempts$',
    'or without any error'
);
select jobq.redrive(:'two');
select jobq.cancel(:'two', 'ordered twice');
select matches(
    pg_temp.says(:'two', 'finished'), '^cancelled at .* 0 attempts: ordered twice$',
    'or with the reason that was given'
);
select is(
    refusal(format('select jobq.explain(%L)', a.job_id)), a.refusal,
    format('explain(%L): %s', a.job_id, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'),
    ('00000000-0000-7000-8000-000000000000', 'JQ001 JOB_NOT_FOUND')
) as a (job_id, refusal);

select jobq.enqueue('tail', queue => 'long', priority => -1) as tail \gset
select count(*) from jobq.enqueue_many((
    select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'long'))
    from generate_series(1, 10010)
));
select is(
    (select e.explanation from jobq.explain(:'tail') as e where e.reason = 'waiting'),
    '10000+ jobs are ahead of it in queue long', 'ten thousand are enough to count'
);

select from jobq.heartbeat('hung', '{}', '{}', '{long}', stuck => 2);
select is(
    (select array_agg(e.reason || ': ' || e.explanation) from jobq.explain(:'tail') as e
    where e.reason = 'slots_lost'),
    '{"slots_lost: handlers that hang occupy 2 slots of worker hung"}',
    'slots that are lost are named'
);

select jobq.enqueue('asks', queue => 'w') as asks, jobq.enqueue('asks', queue => 'w') as patient \gset
select from jobq.claim_job(:'asks', 'w');
select is(jobq.cancel(:'asks', 'ordered twice'), 'cancel_requested', 'a worker is asked to stop');
select matches(
    pg_temp.says(:'asks', 'running'), '; cancellation requested at .*: ordered twice$',
    'which is mentioned'
);
select from jobq.claim_job(:'patient', 'w');
select from jobq.ask(:'patient', 1, 'refund', 'Refund it?');
select is(pg_temp.reasons(:'patient'), '{event}', 'a wait for a person is no schedule');
select matches(
    pg_temp.says(:'patient', 'event'), '^waits for a person: Refund it\? since [^,]*$',
    'and has no end without a timeout'
);
select from jobq.change_many(
    jsonb_build_object('run_at', now() + interval '1 h'), array[:'patient'::uuid]
);
select is(
    pg_temp.reasons(:'patient'), '{event,scheduled}', 'unless the job runs before its wait ends'
);

-- Jobs that are stored before their kind gets limits for each key.
select from jobq.heartbeat('w', '{}', '{}', '{q,keyed}');
select jobq.enqueue('keyed', queue => 'keyed', concurrency_key => 'a') as first,
    jobq.enqueue('keyed', queue => 'keyed', concurrency_key => 'a') as second \gset
select from jobq.put_kind('keyed', key_max_running => 1);
select is(pg_temp.reasons(:'second'), '{waiting}', 'a key below the new limit of its kind is free');
select from jobq.claim_job(:'first', 'w');
select is(
    pg_temp.reasons(:'second'), '{key_busy,waiting}', 'the limits of its kind are the present ones'
);

select * from finish();
rollback;
