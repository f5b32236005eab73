-- What jobq.resume_queue() promises.
begin;
select plan(5);

select jobq.enqueue('work', queue => 'q');
select jobq.pause_queue('q', 'maintenance');
select jobq.resume_queue('q');
select results_eq(
    'select paused_at, pause_reason from jobq_private.queue where queue = ''q''',
    'values (null::timestamptz, null::text)', 'a resumed queue is not paused'
);
select isnt_empty('select jobq.claim(''{q}'', ''w'')', 'and is claimed from');
select lives_ok('select jobq.resume_queue(''q'')', 'resuming again changes nothing');
select is(
    refusal(format('select jobq.resume_queue(%L)', a.queue)), a.refusal,
    format('resume_queue(%L): %s', a.queue, a.refusal)
)
from (
    values (null, '22004 NULL_ARGUMENT'), ('nowhere', 'JQ007 QUEUE_NOT_FOUND')
) as a (queue, refusal);

select * from finish();
rollback;
