-- Verify jobq:handler on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.work', ''),
        ('function', 'jobq_internal.claim_calls', ''),
        ('function', 'jobq_internal.get_call', ''),
        ('function', 'jobq_internal.run_calls', ''),
        ('function', 'jobq_private.is_trusted', ''),
        ('function', 'jobq_private.kind_run', ''),
        ('function', 'jobq_private.sql_function', ''),
        ('function', 'jobq_private.sql_function_bar', ''),
        ('function', 'jobq_private.sql_function_problem', ''),
        ('trigger', 'jobq_private.kind', 'kind_run')
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
