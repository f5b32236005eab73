-- A clock that was days ahead and is put back: what was made meanwhile is found, and counts.
-- Needs more than the core.
begin;
select plan(4);

select hold_off_vacuum();
-- As if two days ahead: the id has the time, and so has created_at.
create function pg_temp.made_ahead(job_id uuid)
returns uuid
language plpgsql
as $$
declare
    _id constant uuid := overlay(
        made_ahead.job_id::text
        placing left(jobq_private.id_floor(now() + interval '2 days')::text, 13) from 1
    )::uuid;
begin
    set local session_replication_role = replica;
    update jobq_private.job as j
    set job_id = _id, created_at = now() + interval '2 days'
    where j.job_id = made_ahead.job_id;
    update jobq_private.edge as e set parent = _id where e.parent = made_ahead.job_id;
    set local session_replication_role = origin;
    return _id;
end
$$;

select jobq.enqueue('parent') as parent, jobq.enqueue('fails') as fails \gset
select jobq.enqueue('child', after => array[:'parent']::uuid[]) as child \gset
select pg_temp.made_ahead(:'parent') as parent, pg_temp.made_ahead(:'fails') as fails \gset
select from jobq.claim_job(:'parent', 'w');
select from jobq.claim_job(:'fails', 'w');
select jobq.complete(:'parent', 1);
select jobq.fail(:'fails', 1, 'boom', retryable => false);
select is((jobq.get_job(:'parent')).state::text, 'succeeded', 'a job is found that ended before its id');
select is((jobq.get_job(:'fails')).state::text, 'dead', 'so is a dead one');
do $$
begin
    for _n in 1 .. 20 loop
        perform jobq_private.resolve();
    end loop;
end
$$;
select is(
    (jobq.get_job(:'child')).state::text, 'queued', 'its success counts for those who waited for it'
);
select is(jobq.redrive(:'fails'), 'queued', 'a dead one can be run again');

select * from finish();
rollback;
