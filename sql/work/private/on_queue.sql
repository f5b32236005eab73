-- Purpose: hook, called in place of find_jobs() for a queue that on_claim() has called special.
-- Returns the jobs already started and those to start. In the core no queue is special.
create or replace function jobq_private.on_queue(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn language sql as $$
    select row(
        '{}', jobq_private.find_jobs(queue, max_jobs, except_kinds, kinds), null, 0
    )::jobq_private.claim_turn
$$;
