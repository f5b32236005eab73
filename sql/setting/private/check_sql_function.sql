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
    _problem text;
begin
    if run !~ '^[^".[:space:]]+\.[^".[:space:]]+$' then
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
