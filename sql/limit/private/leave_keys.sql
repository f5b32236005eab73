-- Purpose: after attempts have ended: their slots are free, those with attempts left
-- wait again, and the key of a dead job may have to wait for an operator.
create or replace function jobq_private.leave_keys(endings jobq_private.ending[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
begin
    perform jobq_private.store_hold(
        e.queue, null, e.concurrency_key, 'infinity', format('job %s is dead', e.job_id), e.job_id
    )
    from unnest(endings) as e
    cross join lateral jobq_private.limit_usage(
        e.key_id, e.queue, jobq_private.key_kind(e.key_id, e.queue, e.concurrency_key, e.kind),
        e.concurrency_key, now()
    ) as u
    where e.state = 'dead' and e.concurrency_key is not null and u.is_ordered and u.holds_on_dead;
    perform jobq_private.open_keys(
        array(select e.job_id from unnest(endings) as e where e.state in ('retrying', 'queued')),
        array(select distinct e.key_id from unnest(endings) as e)
    );
    perform jobq_private.wake_limited(
        array(select e.queue from unnest(endings) as e),
        array(select e.kind from unnest(endings) as e)
    );
end
$$;
