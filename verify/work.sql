-- Verify jobq:work on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.backoff', '', 1),
        ('function', 'jobq.begin_wait', '', 1),
        ('function', 'jobq.claim', '', 1),
        ('function', 'jobq.claim_calls', '', 1),
        ('function', 'jobq.claim_job', '', 1),
        ('function', 'jobq.complete', '', 1),
        ('function', 'jobq.complete_many', '', 1),
        ('function', 'jobq.confirm_cancel', '', 1),
        ('function', 'jobq.due_in', '', 1),
        ('function', 'jobq.end_wait', '', 1),
        ('function', 'jobq.exchange', '', 1),
        ('function', 'jobq.fail', '', 1),
        ('function', 'jobq.fail_many', '', 1),
        ('function', 'jobq.heartbeat', '', 1),
        ('function', 'jobq.hold_lane', '', 1),
        ('function', 'jobq.list_workers', '', 1),
        ('function', 'jobq.log', '', 1),
        ('function', 'jobq.next_due', '', 1),
        ('function', 'jobq.rate_limited', '', 1),
        ('function', 'jobq.recover', '', 1),
        ('function', 'jobq.release', '', 1),
        ('function', 'jobq.release_many', '', 1),
        ('function', 'jobq.retire_worker', '', 1),
        ('function', 'jobq.run_calls', '', 1),
        ('function', 'jobq.set_progress', '', 1),
        ('function', 'jobq.work', '', 1),
        ('function', 'jobq_private.announce', '', 1),
        ('function', 'jobq_private.can_skip', '', 1),
        ('function', 'jobq_private.check_claim', '', 1),
        ('function', 'jobq_private.check_results', '', 1),
        ('function', 'jobq_private.claimable_queues', '', 1),
        ('function', 'jobq_private.due_priority', '', 1),
        ('function', 'jobq_private.fail_free', '', 1),
        ('function', 'jobq_private.find_jobs', '', 1),
        ('function', 'jobq_private.held_jobs', '', 1),
        ('function', 'jobq_private.is_overtaken', '', 1),
        ('function', 'jobq_private.is_unknown', '', 1),
        ('function', 'jobq_private.keep_mark', '', 1),
        ('function', 'jobq_private.kept_details', '', 1),
        ('function', 'jobq_private.lost_job', '', 1),
        ('function', 'jobq_private.next_mark', '', 1),
        ('function', 'jobq_private.notify', '', 1),
        ('function', 'jobq_private.notify_queue', '', 1),
        ('function', 'jobq_private.refuse_attempt', '', 1),
        ('function', 'jobq_private.settle_failures', '', 1),
        ('function', 'jobq_private.settle_rest', '', 1),
        ('function', 'jobq_private.settle_successes', '', 1),
        ('function', 'jobq_private.share_front', '', 1),
        ('function', 'jobq_private.shared_front', '', 1),
        ('function', 'jobq_private.start_calls', '', 1),
        ('function', 'jobq_private.touched_age', '', 1),
        ('function', 'jobq_private.wake', '', 1),
        ('view', 'jobq.worker', '', 1)
    )
    select string_agg(w.kind || ' ' || w.name || ' ' || w.trigger, ', ') into _wrong
    from wanted as w
    where case w.kind
        when 'trigger' then not exists (
            select from pg_catalog.pg_trigger as t
            where t.tgrelid = to_regclass(w.name) and t.tgname = w.trigger
        )
        when 'view' then to_regclass(w.name) is null
            or has_table_privilege('public', to_regclass(w.name), 'select')
        else w.many > (
            select count(*)
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where format('%s.%s', n.nspname, p.proname) = w.name
            and not has_function_privilege('public', p.oid, 'execute')
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
