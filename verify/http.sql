-- Verify jobq:http on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq_http.authenticate', '', 1),
        ('function', 'jobq_http.cancel_execution', '', 1),
        ('function', 'jobq_http.create_api_key', '', 1),
        ('function', 'jobq_http.list_api_keys', '', 1),
        ('function', 'jobq_http.page_attempts', '', 1),
        ('function', 'jobq_http.page_audit', '', 1),
        ('function', 'jobq_http.page_executions', '', 1),
        ('function', 'jobq_http.page_jobs', '', 1),
        ('function', 'jobq_http.page_logs', '', 1),
        ('function', 'jobq_http.page_queues', '', 1),
        ('function', 'jobq_http.page_schedule_versions', '', 1),
        ('function', 'jobq_http.page_schedules', '', 1),
        ('function', 'jobq_http.preview_slots', '', 1),
        ('function', 'jobq_http.revise_job', '', 1),
        ('function', 'jobq_http.revoke_api_key', '', 1),
        ('function', 'jobq_http.show_dead_jobs', '', 1),
        ('function', 'jobq_http.show_execution', '', 1),
        ('function', 'jobq_http.show_history', '', 1),
        ('function', 'jobq_http.show_job', '', 1),
        ('function', 'jobq_http.show_jobs', '', 1),
        ('function', 'jobq_http.show_login', '', 1),
        ('function', 'jobq_http.show_pulse', '', 1),
        ('function', 'jobq_http.show_queue', '', 1),
        ('function', 'jobq_http.show_queues', '', 1),
        ('function', 'jobq_http.show_schedule', '', 1),
        ('function', 'jobq_http.show_totals', '', 1),
        ('function', 'jobq_http.show_workers', '', 1),
        ('function', 'jobq_http.stop_job', '', 1),
        ('function', 'jobq_http.submit_job', '', 1),
        ('function', 'jobq_http.submit_jobs', '', 1),
        ('function', 'jobq_http.submit_schedule', '', 1),
        ('function', 'jobq_private.execution_document', '', 1),
        ('function', 'jobq_private.execution_started_at', '', 1),
        ('function', 'jobq_private.execution_status', '', 1),
        ('function', 'jobq_private.has_failed', '', 1),
        ('function', 'jobq_private.job_document', '', 1),
        ('function', 'jobq_private.job_trigger', '', 1),
        ('function', 'jobq_private.key_runners', '', 1),
        ('function', 'jobq_private.look_failed', '', 1),
        ('function', 'jobq_private.look_jobs', '', 1),
        ('function', 'jobq_private.look_newest', '', 1),
        ('function', 'jobq_private.payload_name', '', 1)
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
