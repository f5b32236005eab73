-- Verify jobq:job on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.advance_clock', '', 1),
        ('function', 'jobq.await_events', '', 1),
        ('function', 'jobq.cancel', '', 1),
        ('function', 'jobq.cancel_many', '', 1),
        ('function', 'jobq.change_many', '', 1),
        ('function', 'jobq.delete_many', '', 1),
        ('function', 'jobq.enqueue', '', 1),
        ('function', 'jobq.enqueue_many', '', 1),
        ('function', 'jobq.explain', '', 1),
        ('function', 'jobq.find_job', '', 1),
        ('function', 'jobq.get_job', '', 1),
        ('function', 'jobq.list_attempts', '', 1),
        ('function', 'jobq.list_jobs', '', 1),
        ('function', 'jobq.list_logs', '', 1),
        ('function', 'jobq.listen_events', '', 1),
        ('function', 'jobq.redrive', '', 1),
        ('function', 'jobq.redrive_many', '', 1),
        ('function', 'jobq.wait', '', 1),
        ('function', 'jobq_private.archive_jobs', '', 1),
        ('function', 'jobq_private.are_usual', '', 1),
        ('function', 'jobq_private.bar_redrives', '', 1),
        ('function', 'jobq_private.cancel_jobs', '', 1),
        ('function', 'jobq_private.check_birth', '', 1),
        ('function', 'jobq_private.check_change', '', 1),
        ('function', 'jobq_private.check_listening', '', 1),
        ('function', 'jobq_private.check_new_job', '', 1),
        ('function', 'jobq_private.check_new_jobs', '', 1),
        ('function', 'jobq_private.check_payload_change', '', 1),
        ('function', 'jobq_private.check_payload_schemas', '', 1),
        ('function', 'jobq_private.check_queue_depth', '', 1),
        ('function', 'jobq_private.check_worked', '', 1),
        ('function', 'jobq_private.choose_jobs', '', 1),
        ('function', 'jobq_private.cursor_place', '', 1),
        ('function', 'jobq_private.drop_jobs', '', 1),
        ('function', 'jobq_private.drop_partitions', '', 1),
        ('function', 'jobq_private.enqueue_from_view', '', 1),
        ('function', 'jobq_private.event_cursor', '', 1),
        ('function', 'jobq_private.event_span', '', 1),
        ('function', 'jobq_private.expire_jobs', '', 1),
        ('function', 'jobq_private.fill_lanes', '', 1),
        ('function', 'jobq_private.follow_change', '', 1),
        ('function', 'jobq_private.follow_endings', '', 1),
        ('function', 'jobq_private.forget_jobs', '', 1),
        ('function', 'jobq_private.forget_traces', '', 1),
        ('function', 'jobq_private.guard_archive', '', 1),
        ('function', 'jobq_private.has_huge_number', '', 1),
        ('function', 'jobq_private.hold_dedup_key', '', 1),
        ('function', 'jobq_private.hold_key', '', 1),
        ('function', 'jobq_private.hold_keys', '', 1),
        ('function', 'jobq_private.id_floor', '', 1),
        ('function', 'jobq_private.id_time', '', 1),
        ('function', 'jobq_private.insert_jobs', '', 1),
        ('function', 'jobq_private.insert_keyed_jobs', '', 1),
        ('function', 'jobq_private.is_free', '', 1),
        ('function', 'jobq_private.is_key_free', '', 1),
        ('function', 'jobq_private.is_sound', '', 1),
        ('function', 'jobq_private.is_wide', '', 1),
        ('function', 'jobq_private.job_rows', '', 1),
        ('function', 'jobq_private.jobs_ahead', '', 1),
        ('function', 'jobq_private.json_size', '', 1),
        ('function', 'jobq_private.leave_archive', '', 1),
        ('function', 'jobq_private.look_at_birth', '', 1),
        ('function', 'jobq_private.look_floor', '', 1),
        ('function', 'jobq_private.make_partition', '', 1),
        ('function', 'jobq_private.make_partitions', '', 1),
        ('function', 'jobq_private.new_id', '', 1),
        ('function', 'jobq_private.new_job_problem', '', 1),
        ('function', 'jobq_private.noted_at', '', 1),
        ('function', 'jobq_private.payload_schema_problem', '', 1),
        ('function', 'jobq_private.prune_jobs', '', 1),
        ('function', 'jobq_private.put_off', '', 1),
        ('function', 'jobq_private.read_jobs', '', 1),
        ('function', 'jobq_private.redrive_archived', '', 1),
        ('function', 'jobq_private.redrive_jobs', '', 1),
        ('function', 'jobq_private.refuse_change', '', 1),
        ('function', 'jobq_private.refuse_redrive', '', 1),
        ('function', 'jobq_private.refuse_unfinished', '', 1),
        ('function', 'jobq_private.search_jobs', '', 1),
        ('function', 'jobq_private.settled_at', '', 1),
        ('function', 'jobq_private.stamp_transition', '', 1),
        ('function', 'jobq_private.store_job', '', 1),
        ('function', 'jobq_private.store_jobs', '', 1),
        ('function', 'jobq_private.tell_ended', '', 1),
        ('function', 'jobq_private.unreadable_member', '', 1),
        ('function', 'jobq_private.update_from_view', '', 1),
        ('function', 'jobq_private.value_problem', '', 1),
        ('function', 'jobq_private.yield_dedup_key', '', 1),
        ('trigger', 'jobq.job', 'job_insert', 1),
        ('trigger', 'jobq.job', 'job_update', 1),
        ('trigger', 'jobq_private.job', 'job_birth', 1),
        ('trigger', 'jobq_private.job', 'job_end', 1),
        ('trigger', 'jobq_private.job', 'job_identity', 1),
        ('trigger', 'jobq_private.job', 'job_transition', 1),
        ('trigger', 'jobq_private.job_archive', 'archive_birth', 1),
        ('trigger', 'jobq_private.job_archive', 'archive_immutable', 1),
        ('trigger', 'jobq_private.job_archive', 'archive_leave', 1),
        ('trigger', 'jobq_private.job_archive', 'archive_redrive', 1),
        ('trigger', 'jobq_private.transition', 'transition_lane', 1),
        ('view', 'jobq.attempt', '', 1),
        ('view', 'jobq.job', '', 1)
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
