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
begin
    if cardinality(insert_jobs.jobs) = 1 then
        _job := insert_jobs.jobs[1];
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
        return;
    end if;

    perform jobq_private.check_new_jobs(insert_jobs.jobs);
    if exists (
        select from unnest(insert_jobs.jobs) as j
        where coalesce(j.idempotency_key, j.dedup_key) is not null
    ) then
        return query
        select k.ordinal, k.job_id, k.created
        from jobq_private.insert_keyed_jobs(insert_jobs.jobs) as k;
        return;
    end if;
    return query
    select s.ordinal::integer, s.job_id, true
    from unnest(jobq_private.store_jobs(insert_jobs.jobs)) with ordinality as s (job_id, ordinal);
end
$$;

revoke all on function jobq_private.insert_jobs from public;

comment on function jobq_private.insert_jobs is
'Checks and inserts a batch of new jobs, all or none.';
