-- Verify jobq:shard on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.choose_shard', '', 1),
        ('function', 'jobq.list_declarations', '', 1),
        ('function', 'jobq.list_epochs', '', 1),
        ('function', 'jobq.list_router_statements', '', 1),
        ('function', 'jobq.list_shards', '', 1),
        ('function', 'jobq.put_epoch', '', 1),
        ('function', 'jobq.put_shard', '', 1),
        ('function', 'jobq.shard_of', '', 1),
        ('function', 'jobq_private.become_shard', '', 1),
        ('function', 'jobq_private.own_shard', '', 1),
        ('function', 'jobq_private.router_calls', '', 1),
        ('function', 'jobq_private.router_function', '', 1),
        ('view', 'jobq_private.routed_function', '', 1)
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
