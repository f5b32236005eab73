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
    -- What parse_ident() takes without quotes.
    _name constant text := '([a-z_]|[^\u0001-\u007f])([a-z0-9_$]|[^\u0001-\u007f])*';
    _problem text;
begin
    if run !~* format('^%1$s\.%1$s$', _name) then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            'run must be a schema and a function without quotes: %s', run
        ));
    end if;
    _problem := jobq_private.sql_function_problem(run);
    if _problem is not null then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', _problem);
    elsif not (select f.may_execute from jobq_private.sql_function(run) as f) then
        perform jobq_private.raise_error('FUNCTION_DENIED', run);
    end if;
end
$$;

revoke all on function jobq_private.check_sql_function from public;

comment on function jobq_private.check_sql_function is
'Refuses a function that a kind cannot run.';
