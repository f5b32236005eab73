-- Verify jobq:limit on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.hold_key', ''),
        ('function', 'jobq.put_budget', ''),
        ('function', 'jobq.put_limit', ''),
        ('function', 'jobq.rate_limited', ''),
        ('function', 'jobq.release_key', ''),
        ('function', 'jobq.spend', ''),
        ('function', 'jobq_internal.list_budgets', ''),
        ('function', 'jobq_internal.list_limits', ''),
        ('function', 'jobq_private.awaited_limits', ''),
        ('function', 'jobq_private.blocking_limits', ''),
        ('function', 'jobq_private.budget_period', ''),
        ('function', 'jobq_private.charge', ''),
        ('function', 'jobq_private.check_limits', ''),
        ('function', 'jobq_private.claim_keys', ''),
        ('function', 'jobq_private.close_keys', ''),
        ('function', 'jobq_private.count_running', ''),
        ('function', 'jobq_private.enter_queue', ''),
        ('function', 'jobq_private.find_waiting_keys', ''),
        ('function', 'jobq_private.job_limits', ''),
        ('function', 'jobq_private.keep_key', ''),
        ('function', 'jobq_private.key_kind', ''),
        ('function', 'jobq_private.key_of', ''),
        ('function', 'jobq_private.leave_keys', ''),
        ('function', 'jobq_private.limit_id', ''),
        ('function', 'jobq_private.limit_usage', ''),
        ('function', 'jobq_private.limits_changed', ''),
        ('function', 'jobq_private.lock_limits', ''),
        ('function', 'jobq_private.lock_slot', ''),
        ('function', 'jobq_private.move_jobs', ''),
        ('function', 'jobq_private.next_key', ''),
        ('function', 'jobq_private.number_running', ''),
        ('function', 'jobq_private.open_again', ''),
        ('function', 'jobq_private.open_due_keys', ''),
        ('function', 'jobq_private.open_keys', ''),
        ('function', 'jobq_private.pass_limits', ''),
        ('function', 'jobq_private.prune_limits', ''),
        ('function', 'jobq_private.release_dead_keys', ''),
        ('function', 'jobq_private.running_without_slot', ''),
        ('function', 'jobq_private.store_hold', ''),
        ('function', 'jobq_private.take_jobs', ''),
        ('function', 'jobq_private.take_slot', ''),
        ('trigger', 'jobq_private.job', 'job_key'),
        ('trigger', 'jobq_private.key_limit', 'key_limits'),
        ('trigger', 'jobq_private.kind', 'kind_limits'),
        ('trigger', 'jobq_private.queue', 'queue_limits')
    )
    select string_agg(w.kind || ' ' || w.name || ' ' || w.trigger, ', ') into _wrong
    from wanted as w
    where case w.kind
        when 'trigger' then not exists (
            select from pg_catalog.pg_trigger as t
            where t.tgrelid = to_regclass(w.name) and t.tgname = w.trigger
        )
        when 'view' then coalesce(
            has_table_privilege('public', to_regclass(w.name), 'select'), true
        )
        else coalesce(
            has_function_privilege('public', to_regproc(w.name)::oid, 'execute'), true
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
