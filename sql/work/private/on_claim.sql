-- Purpose: the hook by which limits take part in a claim, before it looks into a queue: here, that a
-- queue is not paused. The full installation replaces it.
-- Invariant: returns null where the claim is to look itself, else the jobs that are started already,
-- and those that the claim is to start. The trigger of the table asks for one job that is about to
-- start: none found means that it must not. max_jobs is then 0 where a claim has counted it already.
-- Raises: nothing.
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
