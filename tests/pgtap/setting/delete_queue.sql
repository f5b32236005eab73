-- What jobq.delete_queue() promises.
-- Needs more than the core.
begin;
select plan(9);

select jobq.put_queue('q', max_attempts => 9);
select jobq.enqueue('work', queue => 'q') as job_id \gset
select is(
    refusal('select jobq.delete_queue(''q'')'), 'JQ008 HAS_DEPENDENTS',
    'a queue with live jobs stays'
);
select jobq.cancel(:'job_id');
select is(
    refusal('select jobq.delete_queue(''q'')'), 'none',
    'finished jobs do not hold it'
);
select is(
    jobq.settings(null, 'q') ->> 'max_attempts', '5', 'what was declared is forgotten'
);
select is(
    refusal(format('select jobq.delete_queue(%L)', a.queue)), a.refusal,
    format('delete_queue(%L): %s', a.queue, a.refusal)
)
from (
    values ('q', 'JQ007 QUEUE_NOT_FOUND'), ('', 'JQ007 QUEUE_NOT_FOUND'),
    (null, '22004 NULL_ARGUMENT')
) as a (queue, refusal);

-- Schedules
select jobq.put_queue('timed');
select jobq.create_schedule(
    's', 'k', '@daily', queue => 'timed'
);
select is(
    refusal('select jobq.delete_queue(''timed'')'), 'JQ008 HAS_DEPENDENTS',
    'a queue with a schedule in force stays'
);
select jobq.retire_schedule('s');
select is(
    refusal('select jobq.delete_queue(''timed'')'), 'none',
    'a retired schedule does not hold it'
);
select jobq.put_queue('after');
select jobq.create_schedule(
    'g', 'k', '@daily', graph => '{"jobs": [{"name": "a", "kind": "b", "queue": "after"}]}'
);
select is(
    refusal('select jobq.delete_queue(''after'')'), 'JQ008 HAS_DEPENDENTS',
    'nor does a queue go that a schedule''s graph names'
);

select * from finish();
rollback;
