-- Purpose: check and insert a batch of new jobs; the one way in.
-- Invariant: all or none. Jobs without keys go in by one statement; jobs with keys, and a
-- single job, as by enqueue(), one by one, in the order of their keys, so that batches
-- cannot deadlock on them.
-- Raises: 22004, 22023, JQ004, JQ005, JQ006, JQ010.
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
    _plain jobq_private.new_job[] := insert_jobs.jobs;
begin
    if cardinality(insert_jobs.jobs) = 1 then
        _job := insert_jobs.jobs[1];
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
        return;
    end if;

    if exists (
        select from unnest(insert_jobs.jobs) as j
        where coalesce(j.idempotency_key, j.dedup_key) is not null
    ) then
        select array_agg(j) into _plain
        from unnest(insert_jobs.jobs) as j
        where coalesce(j.idempotency_key, j.dedup_key) is null;

        for _job in
            select j.*
            from unnest(insert_jobs.jobs) as j
            where coalesce(j.idempotency_key, j.dedup_key) is not null
            order by j.kind, j.idempotency_key, j.dedup_key, j.ordinal
        loop
            return query
            select _job.ordinal, s.job_id, s.created
            from jobq_private.store_job(_job) as s;
        end loop;
    end if;

    if _plain is not null then
        perform jobq_private.check_new_jobs(_plain);
        return query
        select s.ordinal, s.job_id, true
        from jobq_private.store_jobs(_plain) as s;
    end if;
end
$$;

revoke all on function jobq_private.insert_jobs from public;

comment on function jobq_private.insert_jobs is
'Checks and inserts a batch of new jobs, all or none.';
