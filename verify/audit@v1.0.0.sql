-- Verify jobq:audit on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq_private.audit_change', ''),
        ('function', 'jobq_private.audit_immutable', ''),
        ('function', 'jobq_private.audit_settings', ''),
        ('function', 'jobq_private.record_audit', ''),
        ('trigger', 'jobq_private.audit', 'audit_immutable'),
        ('trigger', 'jobq_private.queue', 'queue_audit'),
        ('trigger', 'jobq_private.queue', 'queue_birth_audit'),
        ('view', 'jobq.audit', '')
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
