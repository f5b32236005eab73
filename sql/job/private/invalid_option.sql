-- Purpose: which option of a new job is out of range, or null.
create or replace function jobq_private.invalid_option(job jobq_private.new_job)
returns text language plpgsql stable as $$
begin
    return case
        when job.priority not between -32768 and 32767
        then 'priority must be from -32768 to 32767'
        when job.max_attempts not between 1 and 10000
        then 'max_attempts must be from 1 to 10000'
        when job.timeout not between '1 ms' and '365 days'
        then 'timeout must be from 1 ms to 365 days'
        when job.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'run_at must be in the years 1 to 9999'
        when job.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
            or job.expires_at <= coalesce(job.run_at, now())
        then 'expires_at must be after run_at, in the years 1 to 9999'
        when length(job.idempotency_key) not between 1 and 512
        then 'idempotency_key must have 1 to 512 characters'
        when length(job.dedup_key) not between 1 and 512
        then 'dedup_key must have 1 to 512 characters'
        when job.dedup not in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')
        then 'dedup must be skip, enqueue, replace, debounce or throttle'
        when job.dedup = 'replace' and job.dedup_key is null
        then 'dedup replace requires a dedup_key'
        when job.after_failure not in ('cancel', 'wait', 'run')
        then 'after_failure must be cancel, wait or run'
        when octet_length(job.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when not job.cost between 0 and 1000000000000
        then 'cost must be a number from 0 to 1000000000000'
        when jsonb_typeof(job.metadata) <> 'object'
        then 'metadata must be a JSON object'
    end;
end
$$;
