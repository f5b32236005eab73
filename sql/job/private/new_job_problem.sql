-- Purpose: why a new job is not acceptable by itself: the error's code and its detail; null
-- when it is. size is what json_size() says of payload and metadata together.
-- Invariant: a payload is looked at only where its text is long enough to be too deep or to
-- hold a huge number; years as clients in any time zone can hold them. No SET clause, so
-- that it is inlined, for one job as for a batch.
-- Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, size integer, max_bytes integer, max_depth integer
)
returns text[]
language sql
stable
parallel safe
security invoker
as $$
    select case
        when job.kind is null then array['NULL_ARGUMENT', 'kind']
        when pg_catalog.length(job.kind) not between 1 and 128
        then array['INVALID_ARGUMENT', 'kind must have 1 to 128 characters']
        when pg_catalog.length(job.queue) not between 1 and 128 or job.queue = '*'
        then array[
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters, and be one queue, not *'
        ]
        when job.priority not between -32768 and 32767
        then array['INVALID_ARGUMENT', 'priority must be from -32768 to 32767']
        when job.max_attempts not between 1 and 10000
        then array['INVALID_ARGUMENT', 'max_attempts must be from 1 to 10000']
        when job.timeout not between '1 ms' and '365 days'
        then array['INVALID_ARGUMENT', 'timeout must be from 1 ms to 365 days']
        when job.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then array['INVALID_ARGUMENT', 'run_at must be in the years 1 to 9999']
        when job.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        or job.expires_at <= coalesce(job.run_at, pg_catalog.now())
        then array[
            'INVALID_ARGUMENT', 'expires_at must be after run_at, in the years 1 to 9999'
        ]
        when pg_catalog.length(job.idempotency_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'idempotency_key must have 1 to 512 characters']
        when pg_catalog.length(job.dedup_key) not between 1 and 512
        then array['INVALID_ARGUMENT', 'dedup_key must have 1 to 512 characters']
        when job.dedup not in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')
        then array['INVALID_ARGUMENT', 'dedup must be skip, enqueue, replace, debounce or throttle']
        when job.dedup = 'replace' and job.dedup_key is null
        then array['INVALID_ARGUMENT', 'dedup is replace, which needs a dedup_key']
        when job.after_failure not in ('cancel', 'wait', 'run')
        then array['INVALID_ARGUMENT', 'after_failure must be cancel, wait or run']
        when pg_catalog.octet_length(job.concurrency_key) not between 1 and 1024
        then array['INVALID_ARGUMENT', 'concurrency_key must have 1 to 1024 bytes']
        when pg_catalog.jsonb_typeof(job.metadata) <> 'object'
        then array['INVALID_ARGUMENT', 'metadata must be a JSON object']
        when size > max_bytes
        then array[
            'PAYLOAD_TOO_LARGE', pg_catalog.format('%s bytes, at most %s', size, max_bytes)
        ]
        when size > 2 * max_depth and (
            pg_catalog.jsonb_path_exists(
                job.payload, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
            or pg_catalog.jsonb_path_exists(
                job.metadata, pg_catalog.format('strict $.**{%s}', max_depth)::jsonpath
            )
        )
        then array['PAYLOAD_TOO_DEEP', pg_catalog.format('at most %s levels', max_depth)]
        when size is null or size > 308 and (
            not jobq_private.is_wide(job.payload)
            and jobq_private.has_huge_number(job.payload)
            or not jobq_private.is_wide(job.metadata)
            and jobq_private.has_huge_number(job.metadata)
        )
        then array['PAYLOAD_INVALID', pg_catalog.format(
            '%s: a number beyond the range of a double', case
                when jobq_private.has_huge_number(job.payload) then 'payload'
                else 'metadata'
            end
        )]
    end
$$;

revoke all on function jobq_private.new_job_problem from public;

comment on function jobq_private.new_job_problem is
'Says why a new job is not acceptable by itself, as the code of an error and its detail.';
