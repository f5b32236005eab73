-- Purpose: of many queues those in which a claim may find something, in the same order.
-- Invariant: an index probe for each queue, where looking at each would cost a claim of a
-- thousand empty ones most of its time. A queue in which the session has kept its place counts,
-- since a probe would walk what lies dead before that. Raises: nothing.
create or replace function jobq_private.claimable_queues(queues text[])
returns text[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    -- Without skipping, a bound would have the scan read all that is due later.
    _bound constant timestamptz := case
        when jobq_private.can_skip() then clock_timestamp()
        else 'infinity'
    end;
    _has_lanes constant boolean := exists (select from jobq_private.lane as l)
        or exists (select from jobq_private.lane_call as c);
begin
    return array(
        select q.queue
        from unnest(claimable_queues.queues) with ordinality as q (queue, n)
        where current_setting('jobq.mark_' || (hashtext(q.queue) & 1023), true) <> ''
        or (
            select true
            from jobq_private.job as j
            where j.queue = q.queue
            and j.state in ('queued', 'retrying')
            and j.lane_id is null
            and j.run_at <= _bound
            limit 1
        )
        or _has_lanes and (
            (select true from jobq_private.lane_call as c where c.queue = q.queue limit 1)
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.state <> 'full'
                limit 1
            )
            or (
                select true
                from jobq_private.lane as l
                where l.queue = q.queue and l.gate_id is not null
                limit 1
            )
        )
        order by q.n
    );
end
$$;

revoke all on function jobq_private.claimable_queues from public;

comment on function jobq_private.claimable_queues is
'Of many queues those in which a claim may find something.';
