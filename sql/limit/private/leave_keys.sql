-- Purpose: after attempts have ended: their slots are free, those with attempts left
-- wait again, and the key of a dead job may have to wait for an operator.
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
begin
    perform jobq_private.store_hold(
        e.queue, null, e.concurrency_key, 'infinity', format('job %s is dead', e.job_id), e.job_id
    )
    from unnest(endings) as e
    cross join lateral jobq_private.limit_rule(
        e.queue, jobq_private.key_kind(e.key_id, e.queue, e.concurrency_key, e.kind),
        e.concurrency_key
    ) as r
    where e.state = 'dead' and e.key_id is not null and r.is_ordered and r.holds_on_dead;
    if _waiting <> '{}' then
        perform jobq_private.add_waiting_keys(_waiting);
    end if;
    perform jobq_private.reopen_keys(array_agg(e.queue), array_agg(e.key_id), array_agg(e.kind))
    from unnest(endings) as e;
end
$$;
