-- Purpose: Enqueues a copy of a finished job, with a link to it, and returns its id.
-- Invariant: the new job has the payload and options of the finished one, which stays as it is,
-- and its id as rerun_of in its metadata. It has no idempotency key, and no live job with the
-- same dedup key takes its place. Raises: 22004, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Never: INVALID_ARGUMENT, BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Returns: the id of the new job.
-- Example: select jobq.rerun(:'dead');
create or replace function jobq.rerun(job_id uuid)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job constant jobq.job := jobq.get_job(rerun.job_id);
begin
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is null
        then format('job_id %s is %s; finished jobs can be rerun', _job.job_id, _job.state)
    end);
    perform jobq_private.record_audit('rerun', _job.job_id::text);
    return (jobq_private.store_jobs(array[
        jobq_private.copy_of(_job, jsonb_build_object('rerun_of', _job.job_id))
    ])).ids[1];
end
$$;
grant execute on function jobq.rerun to jobq_operator;
