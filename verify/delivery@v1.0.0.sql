-- Verify jobq:delivery on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.delete_definition', ''),
        ('function', 'jobq.pause_endpoint', ''),
        ('function', 'jobq.put_config', ''),
        ('function', 'jobq.put_endpoint', ''),
        ('function', 'jobq.put_payload_spec', ''),
        ('function', 'jobq.put_secret', ''),
        ('function', 'jobq.resume_endpoint', ''),
        ('function', 'jobq_internal.endpoint_stats', ''),
        ('function', 'jobq_internal.get_delivery', ''),
        ('function', 'jobq_internal.list_ciphertexts', ''),
        ('function', 'jobq_internal.list_undeliverable', ''),
        ('function', 'jobq_internal.list_versions', ''),
        ('function', 'jobq_internal.page_definitions', ''),
        ('function', 'jobq_internal.rotate_secret', ''),
        ('function', 'jobq_internal.show_definition', ''),
        ('function', 'jobq_internal.test_endpoint', ''),
        ('function', 'jobq_private.begin_definition', ''),
        ('function', 'jobq_private.check_endpoint_spec', ''),
        ('function', 'jobq_private.check_endpoints', ''),
        ('function', 'jobq_private.check_references', ''),
        ('function', 'jobq_private.definition_problem', ''),
        ('function', 'jobq_private.endpoint_rate', ''),
        ('function', 'jobq_private.endpoint_type', ''),
        ('function', 'jobq_private.json_schema_problem', ''),
        ('function', 'jobq_private.milliseconds', ''),
        ('function', 'jobq_private.needed_by_jobs', ''),
        ('function', 'jobq_private.park_delivery', ''),
        ('function', 'jobq_private.parked_until', ''),
        ('function', 'jobq_private.pin_delivery', ''),
        ('function', 'jobq_private.record_version', ''),
        ('function', 'jobq_private.refuse_definition', ''),
        ('function', 'jobq_private.retry_document', ''),
        ('function', 'jobq_private.shared_pattern_problem', ''),
        ('function', 'jobq_private.store_definition', ''),
        ('function', 'jobq_private.takes_input', ''),
        ('function', 'jobq_private.template_references', ''),
        ('trigger', 'jobq_private.definition', 'definition_audit'),
        ('trigger', 'jobq_private.definition', 'definition_end_audit'),
        ('trigger', 'jobq_private.endpoint', 'endpoint_audit'),
        ('trigger', 'jobq_private.endpoint', 'endpoint_end_audit'),
        ('view', 'jobq_private.definition_document', '')
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
