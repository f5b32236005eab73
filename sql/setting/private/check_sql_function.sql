-- Purpose: refuse to have a kind run what is not there or has another signature, and what
-- whoever declares it may not execute.
-- Invariant: reads only. Raises: 42501, JQ007.
create or replace function jobq_private.check_sql_function(run text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    _may_execute boolean;
begin
    if run !~ '^[^".[:space:]]+\.[^".[:space:]]+$' then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            'run must be a schema and a function without quotes: %s', run
        ));
    end if;
    select f.may_execute into _may_execute from jobq_private.sql_function(run) as f;
    if not found then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            '%s(jsonb) returns jsonb, or the same with jsonb[]; found: %s', run, coalesce((
                select string_agg(format(
                    '(%s) returns %s', pg_get_function_arguments(p.oid),
                    pg_get_function_result(p.oid)
                ), ', ')
                from pg_catalog.pg_proc as p
                join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
                where array[n.nspname, p.proname]::text[] = parse_ident(run)
            ), 'none')
        ));
    elsif not _may_execute then
        perform jobq_private.raise_error('FUNCTION_DENIED', run);
    end if;
end
$$;

revoke all on function jobq_private.check_sql_function from public;

comment on function jobq_private.check_sql_function is
'Refuses a function that a kind cannot run.';
