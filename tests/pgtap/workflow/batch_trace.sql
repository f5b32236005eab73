-- The jobs of a batch leave no trace where their kind keeps none: they are there until the batch has
-- ended, which counts them, and maintain() deletes them then.
begin;
select plan(5);

select hold_off_vacuum();
select jobq.put_kind('member', keep_succeeded => '0');
select jobq.open_batch(on_end => '{"kind": "report"}') as batch \gset
select jobq.enqueue('member', batch_id => :'batch') from generate_series(1, 3) \g /dev/null
select jobq.enqueue('member') as alone \gset
select jobq.complete_many(array_agg(c.job_id), array_agg(c.attempt)) from jobq.claim('{default}', 'w', 9) as c \g /dev/null

create function pg_temp.traces() returns bigint language sql as $$
select count(*) from jobq.job as j where j.kind = 'member'
$$;
-- As if time passed: no other column of a finished job can be changed.
create function pg_temp.maintain() returns bigint language plpgsql as $$
begin
    update jobq_private.job_archive set prune_at = now() - interval '1 s' where kind = 'member';
    perform jobq.maintain();
    return pg_temp.traces();
end
$$;

select throws_ok(format('select jobq.get_job(%L)', :'alone'), 'JQ001', null, 'a job of no batch is gone at once');
select is(pg_temp.traces(), 3::bigint, 'those of a batch are there');
select is(pg_temp.maintain(), 3::bigint, 'while it is open, whatever maintain() does');
select jobq.seal_batch(:'batch');
select jobq.maintain() \g /dev/null
select is(b.members, 3::bigint, 'it has counted them') from jobq_internal.batch_status(:'batch') as b;
select is(pg_temp.maintain(), 0::bigint, 'when it has ended they go');

select * from finish();
rollback;
