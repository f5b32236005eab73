-- What all shards must have alike.
begin;
select plan(5);

select jobq.put_kind('k', priority => 3), jobq.put_queue('q'), jobq.put_limit('q', 'key', 2);
select jobq.put_secret('token', decode(repeat('0123', 20), 'hex'), 'key-1');
select jobq.create_schedule('daily', 'k', '@daily') as schedule \gset
create temp table before as select * from jobq_internal.list_declarations();

select results_eq(
    $$select type, name from before
    where type in ('kind', 'queue', 'limit', 'secret', 'schedule') order by 1, 2$$,
    $$values ('kind', 'k'), ('limit', 'q key'), ('queue', 'q'), ('schedule', 'daily'),
        ('secret', 'token')$$,
    'kinds, queues, limits, secrets and schedules are listed'
);
select is(
    (select declaration ->> 'schedule_id' from before where type = 'schedule'), :'schedule',
    'a schedule by its id'
);
select ok(
    (select declaration::text !~ '0123' and declaration ? 'checksum' from before where type = 'secret'),
    'a secret by a checksum alone'
);
update jobq_private.kind set updated_at = '2001-01-01', created_at = '2001-01-01';
select is_empty(
    'select * from jobq_internal.list_declarations() except select * from before',
    'when something was declared does not matter'
);
select jobq.put_kind('k', priority => 4), jobq.pause_queue('q'), jobq.configure(max_attempts => 3);
select results_eq(
    $$select type from (
        select type, name, declaration from jobq_internal.list_declarations() except select * from before
    ) as d order by 1$$,
    $$values ('kind'), ('queue'), ('setting')$$,
    'what was declared does'
);

select * from finish();
rollback;
