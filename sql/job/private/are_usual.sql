-- Purpose: whether options of a new job are surely acceptable: new_job_problem() says the same of them,
-- beside any payload that is_sound() passes, and looks closer at others.
-- Invariant: metadata of at most 308 bytes holds no huge number, and is too short to be too deep. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.are_usual(
    run_at timestamptz, priority integer, max_attempts integer, timeout interval, metadata jsonb
)
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select coalesce(run_at, pg_catalog.now()) between '0002-01-01' and '9998-01-01'
    and coalesce(priority, 0) between -32768 and 32767
    and coalesce(max_attempts, 1) between 1 and 10000
    and coalesce(timeout, '1 s') between '1 ms' and '365 days'
    and pg_catalog.jsonb_typeof(coalesce(metadata, '{}')) = 'object'
    and pg_catalog.pg_column_size(coalesce(metadata, '{}')) <= 600
    and pg_catalog.octet_length(coalesce(metadata::text, ''))
        <= least(308, 2 * (jobq_private.defaults()).max_payload_depth)
$$;

revoke all on function jobq_private.are_usual from public;

comment on function jobq_private.are_usual is
'Says whether options of a new job are surely acceptable.';
