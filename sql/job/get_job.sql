-- Purpose: Returns one job, live or archived.
-- Invariant: searches the archive from the day before the id's own time, so that older partitions
-- are skipped and a clock that was set back hides nothing. Raises: 22004, JQ001.
-- Returns: a row of jobq.job.
-- Example: select state, attempts, last_error from jobq.get_job(:'dead');
create or replace function jobq.get_job(job_id uuid)
returns jobq.job language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
declare
    _job jobq.job;
begin
    perform jobq_private.check_given('job_id', num_nulls(get_job.job_id));
    -- For "is null" alone, the plan would lock every day of the archive. No row has infinity.
    select j.* into _job
    from jobq.job as j
    where j.job_id = get_job.job_id
    and (j.finished_at is null or j.finished_at = 'infinity');
    if not found then
        select j.* into _job
        from jobq.job as j
        where j.job_id = get_job.job_id
        and j.finished_at
            >= jobq_private.id_time(get_job.job_id) - interval '1 day';
    end if;
    if not found then
        perform jobq_private.refuse_missing(get_job.job_id);
    end if;
    return _job;
end
$$;
grant execute on function jobq.get_job to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
