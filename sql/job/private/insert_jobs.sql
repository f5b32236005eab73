-- Purpose: check and insert a batch of new jobs; the one way in. Their ordinals are 1 to n.
-- Invariant: all or none. Every batch takes its locks in one order, so that batches cannot
-- deadlock: idempotency keys first, by kind and key, then dedup keys, by kind and key. Only
-- jobs with dedup keys go in one by one.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _job jobq_private.new_job;
    _ids uuid[];
    _fresh boolean[];
begin
    if cardinality(insert_jobs.jobs) = 1 then
        _job := insert_jobs.jobs[1];
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
        return;
    end if;

    perform jobq_private.check_new_jobs(insert_jobs.jobs);
    select h.ids, h.fresh into _ids, _fresh
    from jobq_private.hold_keys(insert_jobs.jobs) as h;
    return query
    select s.ordinal, s.job_id, true
    from jobq_private.store_jobs(array(
        select j from unnest(insert_jobs.jobs) as j
        where j.dedup_key is null and coalesce(_fresh[j.ordinal], true)
    ), coalesce(_ids, '{}')) as s;
    for _job in
        select j.* from unnest(insert_jobs.jobs) as j
        where j.dedup_key is not null and coalesce(_fresh[j.ordinal], true)
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(
            _job, coalesce(_ids[_job.ordinal], jobq_private.new_id())
        ) as s;
    end loop;

    if false = any (_fresh) then
        perform pg_logical_emit_message(true, 'jobq', '');
        return query
        select j.ordinal, k.job_id, false
        from unnest(insert_jobs.jobs) as j
        join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
        where not _fresh[j.ordinal];
    end if;
end
$$;

revoke all on function jobq_private.insert_jobs from public;

comment on function jobq_private.insert_jobs is
'Checks and inserts a batch of new jobs, all or none.';
