-- Verify jobq:error on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq_private.check_argument', ''),
        ('function', 'jobq_private.check_count', ''),
        ('function', 'jobq_private.check_given', ''),
        ('function', 'jobq_private.check_problem', ''),
        ('function', 'jobq_private.raise_error', ''),
        ('function', 'jobq_private.redacted', ''),
        ('function', 'jobq_private.redacted_json', ''),
        ('function', 'jobq_private.redacted_text', ''),
        ('view', 'jobq.error', '')
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
