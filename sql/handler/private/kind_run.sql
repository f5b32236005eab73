-- Purpose: refuse a kind whose function is missing, has another signature, or may not
-- be executed by the declaring login.
-- Invariant: applies to every writer. Raises: 42501, JQ007.
create or replace function jobq_private.kind_run()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on as $$
declare
    -- A name that parse_ident() accepts without quotes.
    _name constant text := '([a-z_]|[^\u0001-\u007f])([a-z0-9_$]|[^\u0001-\u007f])*';
begin
    perform jobq_private.check_problem('FUNCTION_NOT_FOUND', case
        when new.run !~* format('^%1$s\.%1$s$', _name)
        then format('run must be a schema and a function without quotes: %s', new.run)
        else jobq_private.sql_function_problem(new.run)
    end);
    perform jobq_private.check_problem('FUNCTION_DENIED', (
        select new.run from jobq_private.sql_function(new.run) as f where not f.may_execute
    ));
    return new;
end
$$;

create or replace trigger kind_run
before insert or update of run on jobq_private.kind
for each row when (new.run is not null) execute function jobq_private.kind_run();
