-- What jobq.delete_many() promises.
begin;
select plan(18);

create function pg_temp.made(label text, idempotency_key text default null)
returns uuid
language sql
return jobq.enqueue(label, queue => 'q', idempotency_key => idempotency_key);

create temporary table job as
select l as label, pg_temp.made(l, l) as job_id
from unnest('{waiting,running,succeeded,dead,cancelled}'::text[]) as l;
create function pg_temp.id(label text)
returns uuid
language sql
return (select j.job_id from job as j where j.label = id.label);

select jobq.claim_job(pg_temp.id(l), 'w') from unnest('{running,succeeded,dead}'::text[]) as l;
select jobq.log(pg_temp.id('dead'), 1, 'INFO', 'a line');
select jobq.save_step(pg_temp.id('dead'), 1, 'step', '1');
select jobq.complete(pg_temp.id('succeeded'), 1);
select jobq.fail(pg_temp.id('dead'), 1, 'boom', retryable => false);
select jobq.cancel(pg_temp.id('cancelled'));

select results_eq(
    'select jobq.delete_many(queue => ''q'', dry_run => true)',
    array[pg_temp.id('waiting')], 'a queue is purged of what waits, and of nothing else'
);
select lives_ok(
    format('select jobq.get_job(%L)', pg_temp.id('waiting')), 'a dry run deletes nothing'
);
select results_eq(
    'select jobq.delete_many(queue => ''q'', reason => ''purge'')',
    array[pg_temp.id('waiting')], 'what is deleted is returned'
);
select throws_ok(
    format('select jobq.get_job(%L)', pg_temp.id('waiting')), 'JQ001', null, 'it is gone'
);
select results_eq(
    'select a.subject, a.reason from jobq.audit as a where a.action = ''delete''',
    format('values (%L, ''purge'')', pg_temp.id('waiting')), 'and in the audit'
);
select isnt(
    pg_temp.made('waiting', 'waiting'), pg_temp.id('waiting'), 'its idempotency key is free'
);

select jobq.enqueue('many', queue => 'many', dedup_key => 'd', idempotency_key => 'a') as many \gset
select is(
    jobq.enqueue('many', queue => 'many', dedup_key => 'd', idempotency_key => 'b')::text,
    :'many', 'a second idempotency key stands for a job with the same dedup key'
);
select jobq.delete_many(array[:'many']::uuid[]);
select isnt(
    jobq.enqueue('many', queue => 'many', dedup_key => 'd', idempotency_key => 'b')::text,
    :'many', 'and is free when that is deleted'
);

select results_eq(
    'select jobq.delete_many(queue => ''q'', state => ''dead'')',
    array[pg_temp.id('dead')], 'dead jobs are deleted when that is asked for'
);
select is_empty(
    format('select from jobq_private.%I where job_id = %L', t, pg_temp.id('dead')),
    format('nothing is left in %s', t)
)
from unnest('{attempt,job_log,step,job_archive}'::text[]) as t;
select lives_ok(
    format(
        'select jobq.delete_many(array[%L, %L]::uuid[])', pg_temp.id('succeeded'),
        pg_temp.id('cancelled')
    ),
    'jobs that have ended are deleted by their ids'
);
select throws_ok('select jobq.delete_many()', '22023', null, 'a filter is needed');
select throws_ok(
    'select jobq.delete_many(queue => ''q'', state => ''running'')', '22023', null,
    'running jobs are not deleted'
);
select throws_ok(
    format('select jobq.delete_many(array[%L]::uuid[])', pg_temp.id('running')), 'JQ002', null,
    'nor by their ids'
);
select throws_ok(
    format('select jobq.delete_many(array[%L]::uuid[])', pg_temp.id('dead')), 'JQ001', null,
    'what is gone is not found'
);

select * from finish();
rollback;
