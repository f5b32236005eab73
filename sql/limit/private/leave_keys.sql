-- Purpose: after attempts have ended: their slots are free, those with attempts left
-- wait again, and the key of a dead job may have to wait for an operator.
-- Invariant: locks as lock_limits() does, all slots before the first row, so that two
-- batches whose limits share slots do not wait for each other.
create or replace function jobq_private.leave_keys(endings jobq_private.ending[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _waiting constant uuid[] := array(
        select e.job_id
        from unnest(endings) as e
        where e.state in ('retrying', 'queued') and e.key_id is not null
    );
    _dead constant jobq_private.ending[] := array(
        select e
        from unnest(endings) as e
        cross join lateral jobq_private.limit_rule(
            e.queue, jobq_private.key_kind(e.key_id, e.queue, e.concurrency_key, e.kind),
            e.concurrency_key
        ) as r
        where e.state = 'dead' and e.key_id is not null and r.is_ordered and r.holds_on_dead
        order by jobq_private.limit_id(e.queue, null, e.concurrency_key)
    );
begin
    perform pg_advisory_xact_lock(jobq_private.lock_class('gating'), s.slot)
    from (
        select distinct
            jobq_private.lock_slot(jobq_private.limit_id(d.queue, null, d.concurrency_key)) as slot
        from unnest(_dead) as d
        order by slot
        offset 0
    ) as s;
    perform jobq_private.store_hold(
        d.queue, null, d.concurrency_key, 'infinity', format('job %s is dead', d.job_id), d.job_id
    )
    from unnest(_dead) as d;
    if _waiting <> '{}' then
        perform jobq_private.add_waiting_keys(_waiting);
    end if;
    perform jobq_private.reopen_keys(array_agg(e.queue), array_agg(e.key_id), array_agg(e.kind))
    from unnest(endings) as e;
end
$$;
