-- Verify jobq:admin on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.await_events', ''),
        ('function', 'jobq.cancel_many', ''),
        ('function', 'jobq.change_many', ''),
        ('function', 'jobq.delete_many', ''),
        ('function', 'jobq.explain', ''),
        ('function', 'jobq.health', ''),
        ('function', 'jobq.list_jobs', ''),
        ('function', 'jobq.listen_events', ''),
        ('function', 'jobq.metrics', ''),
        ('function', 'jobq.pause_kind', ''),
        ('function', 'jobq.pause_queue', ''),
        ('function', 'jobq.queue_stats', ''),
        ('function', 'jobq.redrive_many', ''),
        ('function', 'jobq.rerun', ''),
        ('function', 'jobq.resume_kind', ''),
        ('function', 'jobq.resume_queue', ''),
        ('function', 'jobq_internal.advance_clock', ''),
        ('function', 'jobq_internal.find_job', ''),
        ('function', 'jobq_internal.list_attempts', ''),
        ('function', 'jobq_internal.list_kinds', ''),
        ('function', 'jobq_internal.list_logs', ''),
        ('function', 'jobq_internal.list_queues', ''),
        ('function', 'jobq_internal.list_workers', ''),
        ('function', 'jobq_internal.ready', ''),
        ('function', 'jobq_internal.replica_lag', ''),
        ('function', 'jobq_internal.schedule_status', ''),
        ('function', 'jobq_internal.show_graph', ''),
        ('function', 'jobq_private.bucket_events', ''),
        ('function', 'jobq_private.check_change', ''),
        ('function', 'jobq_private.check_payload_change', ''),
        ('function', 'jobq_private.check_states', ''),
        ('function', 'jobq_private.choose_jobs', ''),
        ('function', 'jobq_private.clock_health', ''),
        ('function', 'jobq_private.count_head', ''),
        ('function', 'jobq_private.count_states', ''),
        ('function', 'jobq_private.count_waiting', ''),
        ('function', 'jobq_private.end_pause', ''),
        ('function', 'jobq_private.enqueue_from_view', ''),
        ('function', 'jobq_private.event_cursor', ''),
        ('function', 'jobq_private.event_span', ''),
        ('function', 'jobq_private.event_start', ''),
        ('function', 'jobq_private.execution_status', ''),
        ('function', 'jobq_private.explain_blocked', ''),
        ('function', 'jobq_private.explain_locks', ''),
        ('function', 'jobq_private.explain_pauses', ''),
        ('function', 'jobq_private.explain_state', ''),
        ('function', 'jobq_private.explain_workers', ''),
        ('function', 'jobq_private.findings', ''),
        ('function', 'jobq_private.forget_jobs', ''),
        ('function', 'jobq_private.graph_node_documents', ''),
        ('function', 'jobq_private.head_jobs', ''),
        ('function', 'jobq_private.heal_jobs', ''),
        ('function', 'jobq_private.holders', ''),
        ('function', 'jobq_private.holders_among', ''),
        ('function', 'jobq_private.is_unknown', ''),
        ('function', 'jobq_private.job_trigger', ''),
        ('function', 'jobq_private.jobs_ahead', ''),
        ('function', 'jobq_private.jobs_health', ''),
        ('function', 'jobq_private.key_counts', ''),
        ('function', 'jobq_private.listed', ''),
        ('function', 'jobq_private.locks_health', ''),
        ('function', 'jobq_private.look_floor', ''),
        ('function', 'jobq_private.maintenance_health', ''),
        ('function', 'jobq_private.match_jobs', ''),
        ('function', 'jobq_private.moment_in', ''),
        ('function', 'jobq_private.multixact_members', ''),
        ('function', 'jobq_private.overdue_queues', ''),
        ('function', 'jobq_private.part_health', ''),
        ('function', 'jobq_private.queue_figures', ''),
        ('function', 'jobq_private.recent_rates', ''),
        ('function', 'jobq_private.record_release', ''),
        ('function', 'jobq_private.replication_health', ''),
        ('function', 'jobq_private.roll_up', ''),
        ('function', 'jobq_private.roll_up_buckets', ''),
        ('function', 'jobq_private.schema_access', ''),
        ('function', 'jobq_private.schema_health', ''),
        ('function', 'jobq_private.schema_objects', ''),
        ('function', 'jobq_private.search_jobs', ''),
        ('function', 'jobq_private.server_health', ''),
        ('function', 'jobq_private.settings_health', ''),
        ('function', 'jobq_private.settled_at', ''),
        ('function', 'jobq_private.store_pause', ''),
        ('function', 'jobq_private.trial_health', ''),
        ('function', 'jobq_private.unknown_kinds', ''),
        ('function', 'jobq_private.unserved_queues', ''),
        ('function', 'jobq_private.update_from_view', ''),
        ('function', 'jobq_private.vacuum_health', ''),
        ('function', 'jobq_private.waiting_counts', ''),
        ('function', 'jobq_private.workers_health', ''),
        ('trigger', 'jobq.job', 'job_insert'),
        ('trigger', 'jobq.job', 'job_update'),
        ('view', 'jobq.attempt', ''),
        ('view', 'jobq.kind', ''),
        ('view', 'jobq.queue', ''),
        ('view', 'jobq.worker', ''),
        ('view', 'jobq_private.health_check', ''),
        ('view', 'jobq_private.live_worker', ''),
        ('view', 'jobq_private.schema_difference', ''),
        ('view', 'jobq_private.snapshot_holder', '')
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
