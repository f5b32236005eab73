-- Purpose: the hook on_claim() of a full installation: do first what has to follow from jobs that
-- ended. Queues with limits or waiting keys are special, and all queues while a kind has limits.
-- Invariant: see sql/work/private/on_claim.sql. One statement reads all that a claim must know
-- before it looks into its queues. Of more than 16 queues, those with work are asked.
create or replace function jobq_private.on_claim(queues text[], except_kinds text[])
returns jobq_private.claim_plan language plpgsql as $$
declare
    _plan jobq_private.claim_plan := row(queues, null, null);
    _is_pending boolean;
begin
    for _pass in 1 .. 2 loop
        if cardinality(queues) > 16 then
            _plan.queues := jobq_private.with_work(queues);
        end if;
        select
            exists (select from jobq_private.pending as l where l.due_at <= clock_timestamp()),
            array(
                select q.queue
                from unnest(_plan.queues) as q (queue)
                -- A limit keeps the planner from reading whole tables instead, for a hash.
                where (
                    select true from jobq_private.waiting_key as w
                    where w.queue = q.queue and w.state <> 'full'
                    limit 1
                )
                or (
                    select true from jobq_private.waiting_key as w
                    where w.queue = q.queue and w.full_kind is not null
                    limit 1
                )
                or (
                    select true from jobq_private.limit_hold as h
                    where h.queue = q.queue
                    limit 1
                )
                or (
                    select true from jobq_private.queue as d
                    where d.queue = q.queue
                    and num_nonnulls(d.paused_at, d.max_running, d.rate_limit, d.budget) > 0
                    limit 1
                )
                or exists (
                    select from jobq_private.kind as k
                    where num_nonnulls(
                        k.max_running, k.rate_limit, k.budget, k.key_max_running,
                        k.key_rate_limit, k.key_budget, k.ordered
                    ) > 0
                )
                -- a snapshot that is older than the last change of limits sees none of them
                or current_setting('transaction_isolation') <> 'read committed'
            ),
            nullif(on_claim.except_kinds || array(
                select p.kind from jobq_private.paused_kind as p
            ), '{}')
        into _is_pending, _plan.special, _plan.except_kinds;
        exit when not _is_pending or _pass = 2;
        perform jobq_private.resolve();
    end loop;
    return _plan;
end
$$;
