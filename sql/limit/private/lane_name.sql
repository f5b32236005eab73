-- Purpose: in words, the lane of a job that has a key.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.lane_name(job jobq_private.job)
returns text
language sql
stable
parallel safe
as $$
    select format(
        '%s, concurrency_key %s',
        coalesce(
            'kind ' || jobq_private.lane_kind(
                job.lane_id, job.queue, job.concurrency_key, job.kind
            ),
            'queue ' || job.queue
        ),
        job.concurrency_key
    )
$$;
