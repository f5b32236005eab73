-- Purpose: Enqueues a copy of a finished job, with a link to it, and returns its id.
-- Invariant: the new job has the payload and options of the finished one, which stays as it is, and
-- its id as rerun_of in its metadata. It has no idempotency key, and no live job with the same dedup
-- key takes its place. Raises: 22004, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Never: INVALID_ARGUMENT, BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Returns: the id of the new job.
-- Example: select jobq.rerun(:'dead');
create or replace function jobq.rerun(job_id uuid)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job constant jobq.job := jobq.get_job(rerun.job_id);
    _copy jobq_private.new_job;
begin
    if _job.finished_at is null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s; finished jobs can be rerun', _job.job_id, _job.state
        ));
    end if;
    _copy.ordinal := 1;
    _copy.kind := _job.kind;
    _copy.payload := _job.payload;
    _copy.queue := _job.queue;
    _copy.priority := _job.priority;
    _copy.max_attempts := _job.max_attempts;
    _copy.timeout := _job.timeout;
    _copy.dedup_key := _job.dedup_key;
    _copy.dedup := 'enqueue';
    _copy.metadata := _job.metadata || jsonb_build_object('rerun_of', _job.job_id);
    _copy.concurrency_key := _job.concurrency_key;
    _copy.cost := _job.cost;
    perform jobq_private.record_audit('rerun', _job.job_id::text);
    return (jobq_private.store_jobs(array[_copy])).ids[1];
end
$$;

grant execute on function jobq.rerun to jobq_operator;
