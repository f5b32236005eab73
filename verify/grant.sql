-- Verify jobq:grant on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.enforce_queue_grants', '', 1),
        ('function', 'jobq.grant_queue', '', 1),
        ('function', 'jobq.list_queue_grants', '', 1),
        ('function', 'jobq.revoke_queue', '', 1),
        ('function', 'jobq_private.check_author', '', 1),
        ('function', 'jobq_private.check_queue_grant', '', 1),
        ('function', 'jobq_private.copy_kind_queue', '', 1),
        ('function', 'jobq_private.refuse_job', '', 1),
        ('trigger', 'jobq_private.kind', 'kind_queue', 1),
        ('view', 'jobq.queue_grant', '', 1),
        ('view', 'jobq_private.held_queue', '', 1)
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
