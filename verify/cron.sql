-- Verify jobq:cron on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.next_tick', '', 1),
        ('function', 'jobq.preview_cron', '', 1),
        ('function', 'jobq_private.cron_change', '', 1),
        ('function', 'jobq_private.cron_check', '', 1),
        ('function', 'jobq_private.cron_day_of_month', '', 1),
        ('function', 'jobq_private.cron_day_of_week', '', 1),
        ('function', 'jobq_private.cron_days', '', 1),
        ('function', 'jobq_private.cron_field', '', 1),
        ('function', 'jobq_private.cron_first', '', 1),
        ('function', 'jobq_private.cron_last', '', 1),
        ('function', 'jobq_private.cron_next', '', 1),
        ('function', 'jobq_private.cron_next_local', '', 1),
        ('function', 'jobq_private.cron_number', '', 1),
        ('function', 'jobq_private.cron_parse', '', 1),
        ('function', 'jobq_private.cron_range', '', 1),
        ('function', 'jobq_private.cron_refuse', '', 1),
        ('function', 'jobq_private.cron_rotate', '', 1),
        ('function', 'jobq_private.cron_split', '', 1),
        ('function', 'jobq_private.cron_time', '', 1),
        ('function', 'jobq_private.cron_years', '', 1),
        ('function', 'jobq_private.moment_in', '', 1),
        ('function', 'jobq_private.preview_check', '', 1)
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
