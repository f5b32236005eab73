-- Purpose: hook, called before a claim looks into a queue. Returns null if the claim is to look itself,
-- else the jobs already started and those to start. The core only checks that the queue is not
-- paused.
create or replace function jobq_private.on_claim(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn
language sql
stable
as $$
    select row('{}', '{}', null, 0)::jobq_private.claim_turn
    from jobq_private.queue as q
    where q.queue = on_claim.queue and q.paused_at is not null
$$;
