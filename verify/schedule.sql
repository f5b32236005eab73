-- Verify jobq:schedule on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.backfill_schedule', '', 1),
        ('function', 'jobq.create_schedule', '', 1),
        ('function', 'jobq.get_schedule', '', 1),
        ('function', 'jobq.list_schedule_versions', '', 1),
        ('function', 'jobq.list_schedules', '', 1),
        ('function', 'jobq.pause_schedule', '', 1),
        ('function', 'jobq.preview_schedule', '', 1),
        ('function', 'jobq.resume_schedule', '', 1),
        ('function', 'jobq.retire_schedule', '', 1),
        ('function', 'jobq.run_schedule', '', 1),
        ('function', 'jobq.schedule_status', '', 1),
        ('function', 'jobq.tick', '', 1),
        ('function', 'jobq.tick_in', '', 1),
        ('function', 'jobq.update_schedule', '', 1),
        ('function', 'jobq_private.backfill_slots', '', 1),
        ('function', 'jobq_private.check_backfill', '', 1),
        ('function', 'jobq_private.fire_due', '', 1),
        ('function', 'jobq_private.fire_each', '', 1),
        ('function', 'jobq_private.graph_document', '', 1),
        ('function', 'jobq_private.refuse_schedule_change', '', 1),
        ('function', 'jobq_private.schedule_advance', '', 1),
        ('function', 'jobq_private.schedule_check', '', 1),
        ('function', 'jobq_private.schedule_declare', '', 1),
        ('function', 'jobq_private.schedule_definition', '', 1),
        ('function', 'jobq_private.schedule_document', '', 1),
        ('function', 'jobq_private.schedule_executions', '', 1),
        ('function', 'jobq_private.schedule_find', '', 1),
        ('function', 'jobq_private.schedule_fire', '', 1),
        ('function', 'jobq_private.schedule_first', '', 1),
        ('function', 'jobq_private.schedule_follow', '', 1),
        ('function', 'jobq_private.schedule_hold', '', 1),
        ('function', 'jobq_private.schedule_last', '', 1),
        ('function', 'jobq_private.schedule_last_execution', '', 1),
        ('function', 'jobq_private.schedule_next', '', 1),
        ('function', 'jobq_private.schedule_refuse', '', 1),
        ('function', 'jobq_private.schedule_slots', '', 1),
        ('function', 'jobq_private.schedule_statistics', '', 1),
        ('function', 'jobq_private.schedule_store', '', 1),
        ('function', 'jobq_private.schedule_succeed', '', 1),
        ('trigger', 'jobq_private.schedule', 'schedule_progress', 1),
        ('trigger', 'jobq_private.schedule', 'schedule_version', 1),
        ('view', 'jobq.schedule', '', 1),
        ('view', 'jobq_private.due_schedule', '', 1)
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
