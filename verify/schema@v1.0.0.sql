-- Verify jobq:schema on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq_private.json_schema_violation', ''),
        ('function', 'jobq_private.kind_schema', ''),
        ('function', 'jobq_private.matches_pattern', ''),
        ('function', 'jobq_private.object_violation', ''),
        ('function', 'jobq_private.pattern_problem', ''),
        ('function', 'jobq_private.schema_problem', ''),
        ('function', 'jobq_private.schema_violation', ''),
        ('trigger', 'jobq_private.kind', 'kind_schema')
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
