-- Verify jobq:setting on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.configure', ''),
        ('function', 'jobq.delete_kind', ''),
        ('function', 'jobq.delete_queue', ''),
        ('function', 'jobq.put_kind', ''),
        ('function', 'jobq.put_queue', ''),
        ('function', 'jobq.settings', ''),
        ('function', 'jobq.version', ''),
        ('function', 'jobq_internal.list_payload_schemas', ''),
        ('function', 'jobq_internal.list_undeclared_kinds', ''),
        ('function', 'jobq_private.forget_kind', ''),
        ('function', 'jobq_private.max_attempts_for', ''),
        ('function', 'jobq_private.refuse_setting', ''),
        ('function', 'jobq_private.retry_policy_for', ''),
        ('function', 'jobq_private.settings_for', '')
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
