-- Purpose: hook, called before a claim looks into a queue, or with a job that is about to start.
-- Returns null if the claim is to look itself, else the jobs already started and those to start.
-- For a single job, found = {} means that it must not start; max_jobs is 0 if a claim has counted
-- it. The core only checks that the queue is not paused.
create or replace function jobq_private.on_claim(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    is_first boolean, job jobq_private.job default null
)
returns jobq_private.claim_turn
language sql
stable
as $$
    select row('{}', '{}', null, 0, null)::jobq_private.claim_turn
    from jobq_private.queue as q
    where q.queue = on_claim.queue and q.paused_at is not null
    and (on_claim.job).job_id is null
$$;
