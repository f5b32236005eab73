-- Verify jobq:delivery on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.delete_definition', '', 1),
        ('function', 'jobq.endpoint_stats', '', 1),
        ('function', 'jobq.get_delivery', '', 1),
        ('function', 'jobq.list_ciphertexts', '', 1),
        ('function', 'jobq.list_undeliverable', '', 1),
        ('function', 'jobq.list_versions', '', 1),
        ('function', 'jobq.page_definitions', '', 1),
        ('function', 'jobq.pause_endpoint', '', 1),
        ('function', 'jobq.put_config', '', 1),
        ('function', 'jobq.put_endpoint', '', 1),
        ('function', 'jobq.put_payload_spec', '', 1),
        ('function', 'jobq.put_secret', '', 1),
        ('function', 'jobq.resume_endpoint', '', 1),
        ('function', 'jobq.rotate_secret', '', 1),
        ('function', 'jobq.show_definition', '', 1),
        ('function', 'jobq.test_endpoint', '', 1),
        ('function', 'jobq_private.begin_definition', '', 1),
        ('function', 'jobq_private.check_endpoint_spec', '', 1),
        ('function', 'jobq_private.check_endpoints', '', 1),
        ('function', 'jobq_private.check_references', '', 1),
        ('function', 'jobq_private.definition_problem', '', 1),
        ('function', 'jobq_private.endpoint_rate', '', 1),
        ('function', 'jobq_private.endpoint_schema', '', 1),
        ('function', 'jobq_private.endpoint_type', '', 1),
        ('function', 'jobq_private.is_sendable_url', '', 1),
        ('function', 'jobq_private.json_schema_problem', '', 1),
        ('function', 'jobq_private.needed_by_jobs', '', 1),
        ('function', 'jobq_private.park_delivery', '', 1),
        ('function', 'jobq_private.parked_until', '', 1),
        ('function', 'jobq_private.pin_delivery', '', 1),
        ('function', 'jobq_private.record_version', '', 1),
        ('function', 'jobq_private.refuse_definition', '', 1),
        ('function', 'jobq_private.retry_document', '', 1),
        ('function', 'jobq_private.schema_keyword', '', 1),
        ('function', 'jobq_private.shared_pattern_problem', '', 1),
        ('function', 'jobq_private.spec_field', '', 1),
        ('function', 'jobq_private.store_endpoint', '', 1),
        ('function', 'jobq_private.store_endpoint_kind', '', 1),
        ('function', 'jobq_private.takes_input', '', 1),
        ('function', 'jobq_private.template_references', '', 1),
        ('function', 'jobq_private.version_at', '', 1),
        ('view', 'jobq_private.definition', '', 1)
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
