-- Verify jobq:health on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.health', '', 1),
        ('function', 'jobq.maintain', '', 1),
        ('function', 'jobq.metrics', '', 1),
        ('function', 'jobq.queue_stats', '', 1),
        ('function', 'jobq.ready', '', 1),
        ('function', 'jobq.replica_lag', '', 1),
        ('function', 'jobq_private.client_health', '', 1),
        ('function', 'jobq_private.count_waiting', '', 1),
        ('function', 'jobq_private.listed', '', 1),
        ('function', 'jobq_private.look_waiting', '', 1),
        ('function', 'jobq_private.multixact_members', '', 1),
        ('function', 'jobq_private.prune', '', 1),
        ('function', 'jobq_private.queue_health', '', 1),
        ('function', 'jobq_private.roll_up', '', 1),
        ('function', 'jobq_private.roll_up_minutes', '', 1),
        ('function', 'jobq_private.server_health', '', 1),
        ('function', 'jobq_private.setting_health', '', 1),
        ('function', 'jobq_private.upkeep', '', 1),
        ('function', 'jobq_private.waiting_counts', '', 1),
        ('function', 'jobq_private.widen_history', '', 1),
        ('view', 'jobq_private.unknown_kind', '', 1),
        ('view', 'jobq_private.unserved_queue', '', 1),
        ('view', 'jobq_private.waiting_queue', '', 1)
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
