-- Verify jobq:setting on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.configure', '', 1),
        ('function', 'jobq.delete_kind', '', 1),
        ('function', 'jobq.delete_queue', '', 1),
        ('function', 'jobq.list_kinds', '', 1),
        ('function', 'jobq.list_payload_schemas', '', 1),
        ('function', 'jobq.list_queues', '', 1),
        ('function', 'jobq.list_undeclared_kinds', '', 1),
        ('function', 'jobq.pause_queue', '', 1),
        ('function', 'jobq.put_kind', '', 1),
        ('function', 'jobq.put_queue', '', 1),
        ('function', 'jobq.resume_queue', '', 1),
        ('function', 'jobq.settings', '', 1),
        ('function', 'jobq_private.check_sql_function', '', 1),
        ('function', 'jobq_private.constants', '', 1),
        ('function', 'jobq_private.defaults', '', 1),
        ('function', 'jobq_private.forget_kind', '', 1),
        ('function', 'jobq_private.has_kind_rules', '', 1),
        ('function', 'jobq_private.has_queue_rules', '', 1),
        ('function', 'jobq_private.is_held', '', 1),
        ('function', 'jobq_private.is_paused', '', 1),
        ('function', 'jobq_private.is_trusted', '', 1),
        ('function', 'jobq_private.json_schema_violation', '', 1),
        ('function', 'jobq_private.limits_for', '', 1),
        ('function', 'jobq_private.lock_class', '', 1),
        ('function', 'jobq_private.matches_pattern', '', 1),
        ('function', 'jobq_private.milliseconds', '', 1),
        ('function', 'jobq_private.note_rules', '', 1),
        ('function', 'jobq_private.object_violation', '', 1),
        ('function', 'jobq_private.pattern_problem', '', 1),
        ('function', 'jobq_private.refuse_setting', '', 1),
        ('function', 'jobq_private.retry_policy_for', '', 1),
        ('function', 'jobq_private.schema_problem', '', 1),
        ('function', 'jobq_private.schema_violation', '', 1),
        ('function', 'jobq_private.set_payload_schema', '', 1),
        ('function', 'jobq_private.setting_changed', '', 1),
        ('function', 'jobq_private.settings_for', '', 1),
        ('function', 'jobq_private.sql_function', '', 1),
        ('function', 'jobq_private.sql_function_bar', '', 1),
        ('function', 'jobq_private.sql_function_problem', '', 1),
        ('function', 'jobq_private.write_constants', '', 1),
        ('trigger', 'jobq_private.kind', 'kind_rules', 1),
        ('trigger', 'jobq_private.queue', 'queue_rules', 1),
        ('trigger', 'jobq_private.setting', 'setting_change', 1)
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
