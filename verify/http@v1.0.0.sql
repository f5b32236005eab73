-- Verify jobq:http on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq_http.act_for', ''),
        ('function', 'jobq_http.authenticate', ''),
        ('function', 'jobq_http.cancel_execution', ''),
        ('function', 'jobq_http.create_api_key', ''),
        ('function', 'jobq_http.list_api_keys', ''),
        ('function', 'jobq_http.page_attempts', ''),
        ('function', 'jobq_http.page_audit', ''),
        ('function', 'jobq_http.page_executions', ''),
        ('function', 'jobq_http.page_jobs', ''),
        ('function', 'jobq_http.page_logs', ''),
        ('function', 'jobq_http.page_schedule_versions', ''),
        ('function', 'jobq_http.page_schedules', ''),
        ('function', 'jobq_http.preview_slots', ''),
        ('function', 'jobq_http.revise_job', ''),
        ('function', 'jobq_http.revoke_api_key', ''),
        ('function', 'jobq_http.show_dead_jobs', ''),
        ('function', 'jobq_http.show_execution', ''),
        ('function', 'jobq_http.show_history', ''),
        ('function', 'jobq_http.show_job', ''),
        ('function', 'jobq_http.show_jobs', ''),
        ('function', 'jobq_http.show_login', ''),
        ('function', 'jobq_http.show_pulse', ''),
        ('function', 'jobq_http.show_queue', ''),
        ('function', 'jobq_http.show_queues', ''),
        ('function', 'jobq_http.show_schedule', ''),
        ('function', 'jobq_http.show_totals', ''),
        ('function', 'jobq_http.show_workers', ''),
        ('function', 'jobq_http.show_workflows', ''),
        ('function', 'jobq_http.stop_job', ''),
        ('function', 'jobq_http.submit_job', ''),
        ('function', 'jobq_http.submit_jobs', ''),
        ('function', 'jobq_http.submit_schedule', ''),
        ('function', 'jobq_private.execution_document', ''),
        ('function', 'jobq_private.graph_document', ''),
        ('function', 'jobq_private.job_document', ''),
        ('function', 'jobq_private.key_document', ''),
        ('function', 'jobq_private.key_runners', ''),
        ('function', 'jobq_private.latency_percentiles', ''),
        ('function', 'jobq_private.payload_name', ''),
        ('function', 'jobq_private.schedule_document', ''),
        ('trigger', 'jobq_private.api_key', 'api_key_audit'),
        ('trigger', 'jobq_private.api_key', 'api_key_birth_audit')
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
