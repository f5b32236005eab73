-- Purpose: refuse a batch of new jobs when a payload does not fit the schema of its kind.
-- Invariant: returns true, so that it can stand in a condition: within the statement that pins the
-- version of a delivery it sees what that sees. Raises: JQ006.
create or replace function jobq_private.check_payload_schemas(jobs jobq_private.new_job[])
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := jobq_private.payload_schema_problem(jobs);
begin
    if _problem is not null then
        perform jobq_private.raise_error('PAYLOAD_INVALID', _problem);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_payload_schemas from public;

comment on function jobq_private.check_payload_schemas is
'Refuses a batch of new jobs when a payload does not fit the schema of its kind.';
