-- Purpose: a job as a new one, with this added to its metadata: for rerun() and fork().
-- Invariant: it has no idempotency key, and no live job with its dedup key takes its place.
create or replace function jobq_private.copy_of(job jobq.job, metadata jsonb)
returns jobq_private.new_job language plpgsql stable as $$
declare
    _copy jobq_private.new_job;
begin
    _copy.ordinal := 1;
    _copy.kind := job.kind;
    _copy.payload := job.payload;
    _copy.queue := job.queue;
    _copy.priority := job.priority;
    _copy.max_attempts := job.max_attempts;
    _copy.timeout := job.timeout;
    _copy.dedup_key := job.dedup_key;
    _copy.dedup := 'enqueue';
    _copy.metadata := job.metadata || copy_of.metadata;
    _copy.concurrency_key := job.concurrency_key;
    _copy.cost := job.cost;
    return _copy;
end
$$;
