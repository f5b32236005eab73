-- Purpose: the hook that says which finished jobs others still need: of those that finished between two
-- moments, or of these of them; at most so many.
-- Invariant: reads only. needed_until is infinity for as long as the retention of all. The core alone
-- has no jobs that others need. Raises: nothing.
create or replace function jobq_private.on_forget(
    first timestamptz, last timestamptz, job_ids uuid[], max_jobs integer
)
returns table (job_id uuid, needed_until timestamptz)
language sql
stable
as $$
    select null::uuid, null::timestamptz where false
$$;
