-- What jobq.delete_kind() promises.
-- Needs more than the core.
begin;
select plan(12);

select jobq.put_kind('k', max_attempts => 9);
select jobq.enqueue('k') as job_id \gset
select is(
    refusal('select jobq.delete_kind(''k'')'), 'JQ008 HAS_DEPENDENTS',
    'a kind with live jobs stays'
);
select jobq.cancel(:'job_id');
select is(
    refusal('select jobq.delete_kind(''k'')'), 'none',
    'finished jobs do not hold it'
);
select is(jobq.settings('k') ->> 'max_attempts', '5', 'what was declared is forgotten');
select is(
    refusal(format('select jobq.delete_kind(%L)', a.kind)), a.refusal,
    format('delete_kind(%L): %s', a.kind, a.refusal)
)
from (
    values ('k', 'JQ007 KIND_NOT_FOUND'), ('', 'JQ007 KIND_NOT_FOUND'),
    (null, '22004 NULL_ARGUMENT')
) as a (kind, refusal);

-- Schedules
select jobq.put_kind('timed');
select jobq.create_schedule(
    's', 'timed', '@daily'
);
select is(
    refusal('select jobq.delete_kind(''timed'')'), 'JQ008 HAS_DEPENDENTS',
    'a kind with a schedule in force stays'
);
select jobq.retire_schedule('s');
select is(
    refusal('select jobq.delete_kind(''timed'')'), 'none',
    'a retired schedule does not hold it'
);

select jobq.put_kind('after');
select jobq.create_schedule(
    'g', 'timed', '@daily',
    graph => '{"jobs": [{"name": "a", "kind": "b"}, {"name": "c", "kind": "after"}]}'
);
select is(
    refusal('select jobq.delete_kind(''after'')'), 'JQ008 HAS_DEPENDENTS',
    'nor does a kind go that a schedule''s graph names'
);

-- Endpoints
select jobq.put_endpoint('e', 'HTTP', '{"url": "http://u"}');
select is(
    refusal('select jobq.delete_kind(''e'')'), 'JQ004 IS_ENDPOINT',
    'an endpoint is not deleted as a kind'
);
select is(
    refusal('select jobq.delete_definition(''endpoint'', ''e'')'), 'none',
    'it is deleted as a definition'
);
select is(
    (select count(*)::integer from jobq_internal.list_kinds() as k where k.kind = 'e'), 0,
    'and its kind with it'
);

select * from finish();
rollback;
