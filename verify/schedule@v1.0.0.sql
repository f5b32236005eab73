-- Verify jobq:schedule on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.backfill_schedule', ''),
        ('function', 'jobq.create_schedule', ''),
        ('function', 'jobq.next_tick', ''),
        ('function', 'jobq.pause_schedule', ''),
        ('function', 'jobq.resume_schedule', ''),
        ('function', 'jobq.retire_schedule', ''),
        ('function', 'jobq.run_schedule', ''),
        ('function', 'jobq.update_schedule', ''),
        ('function', 'jobq_internal.get_schedule', ''),
        ('function', 'jobq_internal.list_schedule_versions', ''),
        ('function', 'jobq_internal.list_schedules', ''),
        ('function', 'jobq_internal.preview_cron', ''),
        ('function', 'jobq_internal.preview_schedule', ''),
        ('function', 'jobq_internal.tick', ''),
        ('function', 'jobq_private.backfill_slots', ''),
        ('function', 'jobq_private.cron_bits', ''),
        ('function', 'jobq_private.cron_change', ''),
        ('function', 'jobq_private.cron_check', ''),
        ('function', 'jobq_private.cron_first', ''),
        ('function', 'jobq_private.cron_has_day', ''),
        ('function', 'jobq_private.cron_last', ''),
        ('function', 'jobq_private.cron_next', ''),
        ('function', 'jobq_private.cron_next_local', ''),
        ('function', 'jobq_private.cron_numbers', ''),
        ('function', 'jobq_private.cron_parse', ''),
        ('function', 'jobq_private.cron_time', ''),
        ('function', 'jobq_private.read_schedule', ''),
        ('function', 'jobq_private.refuse_schedule_change', ''),
        ('function', 'jobq_private.refuse_scheduled', ''),
        ('function', 'jobq_private.schedule_advance', ''),
        ('function', 'jobq_private.schedule_check', ''),
        ('function', 'jobq_private.schedule_declare', ''),
        ('function', 'jobq_private.schedule_find', ''),
        ('function', 'jobq_private.schedule_first', ''),
        ('function', 'jobq_private.schedule_follow', ''),
        ('function', 'jobq_private.schedule_hold', ''),
        ('function', 'jobq_private.schedule_next', ''),
        ('function', 'jobq_private.schedule_refuse', ''),
        ('function', 'jobq_private.schedule_slots', ''),
        ('function', 'jobq_private.schedule_store', ''),
        ('function', 'jobq_private.schedule_succeed', ''),
        ('function', 'jobq_private.tick_due', ''),
        ('function', 'jobq_private.tick_schedules', ''),
        ('trigger', 'jobq_private.kind', 'kind_scheduled'),
        ('trigger', 'jobq_private.queue', 'queue_scheduled'),
        ('trigger', 'jobq_private.schedule', 'schedule_progress'),
        ('trigger', 'jobq_private.schedule', 'schedule_version'),
        ('view', 'jobq.schedule', ''),
        ('view', 'jobq_private.due_schedule', '')
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
