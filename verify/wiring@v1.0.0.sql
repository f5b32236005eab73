-- Verify jobq:wiring on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq_private.due_priority', ''),
        ('function', 'jobq_private.find_passing', ''),
        ('function', 'jobq_private.on_claim', ''),
        ('function', 'jobq_private.on_end', ''),
        ('function', 'jobq_private.on_forget', ''),
        ('function', 'jobq_private.on_move', ''),
        ('function', 'jobq_private.on_queue', ''),
        ('function', 'jobq_private.on_redrive', ''),
        ('function', 'jobq_private.on_start', ''),
        ('function', 'jobq_private.on_store', ''),
        ('function', 'jobq_private.on_wait', ''),
        ('function', 'jobq_private.opening', ''),
        ('function', 'jobq_private.refuse_missing', ''),
        ('function', 'jobq_private.with_work', '')
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
