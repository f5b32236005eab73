-- Purpose: hook, called when a claim begins. Returns the queues in which it may find something,
-- in their order: those that are not paused, and of more than 16, those with waiting jobs.
create or replace function jobq_private.on_claim(queues text[], except_kinds text[])
returns jobq_private.claim_plan language plpgsql stable as $$
declare
    _plan jobq_private.claim_plan;
begin
    select
        array(
            select q.queue
            from unnest(on_claim.queues) with ordinality as q (queue, n)
            left join jobq_private.queue as d on d.queue = q.queue
            where d.paused_at is null
            and (cardinality(on_claim.queues) <= 16 or (
                select true
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.due_at is not null
                limit 1
            ))
            order by q.n
        ),
        nullif(on_claim.except_kinds || array(
            select p.kind from jobq_private.paused_kind as p
        ), '{}')
    into _plan.queues, _plan.except_kinds;
    return _plan;
end
$$;
