-- Verify jobq:work on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.begin_wait', ''),
        ('function', 'jobq.claim', ''),
        ('function', 'jobq.claim_job', ''),
        ('function', 'jobq.complete', ''),
        ('function', 'jobq.complete_many', ''),
        ('function', 'jobq.confirm_cancel', ''),
        ('function', 'jobq.due_in', ''),
        ('function', 'jobq.end_wait', ''),
        ('function', 'jobq.exchange', ''),
        ('function', 'jobq.fail', ''),
        ('function', 'jobq.fail_many', ''),
        ('function', 'jobq.heartbeat', ''),
        ('function', 'jobq.log', ''),
        ('function', 'jobq.maintain', ''),
        ('function', 'jobq.maintain_in', ''),
        ('function', 'jobq.release', ''),
        ('function', 'jobq.release_many', ''),
        ('function', 'jobq.retire_worker', ''),
        ('function', 'jobq.set_progress', ''),
        ('function', 'jobq_internal.recover', ''),
        ('function', 'jobq_private.backoff', ''),
        ('function', 'jobq_private.check_attempts', ''),
        ('function', 'jobq_private.check_claim', ''),
        ('function', 'jobq_private.check_results', ''),
        ('function', 'jobq_private.find_jobs', ''),
        ('function', 'jobq_private.find_jobs_from_head', ''),
        ('function', 'jobq_private.first_due', ''),
        ('function', 'jobq_private.held_or_lost', ''),
        ('function', 'jobq_private.is_locked', ''),
        ('function', 'jobq_private.keep_hint', ''),
        ('function', 'jobq_private.kept_failure', ''),
        ('function', 'jobq_private.lock_attempt', ''),
        ('function', 'jobq_private.lock_attempts', ''),
        ('function', 'jobq_private.lock_class', ''),
        ('function', 'jobq_private.match_queues', ''),
        ('function', 'jobq_private.next_due', ''),
        ('function', 'jobq_private.notify', ''),
        ('function', 'jobq_private.on_claim', ''),
        ('function', 'jobq_private.on_queue', ''),
        ('function', 'jobq_private.on_wait', ''),
        ('function', 'jobq_private.prune_keys', ''),
        ('function', 'jobq_private.read_failures', ''),
        ('function', 'jobq_private.read_hint', ''),
        ('function', 'jobq_private.recover_leases', ''),
        ('function', 'jobq_private.refuse_attempt', ''),
        ('function', 'jobq_private.serves', ''),
        ('function', 'jobq_private.settle_failures', ''),
        ('function', 'jobq_private.start_jobs', ''),
        ('function', 'jobq_private.wake', ''),
        ('view', 'jobq_private.waiting_queue', '')
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
