-- Verify jobq:audit on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.act_for', '', 1),
        ('function', 'jobq_private.audit_change', '', 1),
        ('function', 'jobq_private.audit_settings', '', 1),
        ('function', 'jobq_private.guard_audit', '', 1),
        ('function', 'jobq_private.record_audit', '', 1),
        ('trigger', 'jobq_private.api_key', 'api_key_audit', 1),
        ('trigger', 'jobq_private.api_key', 'api_key_birth_audit', 1),
        ('trigger', 'jobq_private.audit', 'audit_immutable', 1),
        ('trigger', 'jobq_private.config', 'config_audit', 1),
        ('trigger', 'jobq_private.config', 'config_end_audit', 1),
        ('trigger', 'jobq_private.endpoint', 'endpoint_audit', 1),
        ('trigger', 'jobq_private.endpoint', 'endpoint_end_audit', 1),
        ('trigger', 'jobq_private.job_archive', 'archive_audit', 1),
        ('trigger', 'jobq_private.payload_spec', 'payload_spec_audit', 1),
        ('trigger', 'jobq_private.payload_spec', 'payload_spec_end_audit', 1),
        ('trigger', 'jobq_private.queue', 'queue_audit', 1),
        ('trigger', 'jobq_private.queue', 'queue_birth_audit', 1),
        ('trigger', 'jobq_private.queue_grant', 'queue_grant_audit', 1),
        ('trigger', 'jobq_private.queue_grant', 'queue_grant_end_audit', 1),
        ('trigger', 'jobq_private.secret', 'secret_audit', 1),
        ('trigger', 'jobq_private.secret', 'secret_end_audit', 1),
        ('view', 'jobq.audit', '', 1)
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
