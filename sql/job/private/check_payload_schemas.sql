-- Purpose: refuse a batch of new jobs when a payload does not fit the schema of its kind.
-- Invariant: kinds without a schema cost one probe of a small table; a JSON Schema that
-- the database cannot enforce by itself is one for its extension. Returns true, so that it can
-- stand in a condition: within the statement that pins the version of a delivery it sees
-- what that sees. Raises: JQ006.
create or replace function jobq_private.check_payload_schemas(jobs jobq_private.new_job[])
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text;
begin
    select format('job %s: %s', j.ordinal, v.violation) into _problem
    from unnest(check_payload_schemas.jobs) as j
    join jobq_private.kind as k
        on k.kind = j.kind and (k.payload_schema is not null or k.json_schema is not null)
    cross join lateral (
        select case
            when k.payload_schema is not null then jobq_private.schema_violation(
                k.payload_schema, coalesce(j.payload, '{}'), 'payload'
            )
            else jobq_private.json_schema_violation(
                k.json_schema, coalesce(j.payload, '{}')
            )
        end as violation
    ) as v
    where v.violation is not null
    limit 1;

    if found then
        perform jobq_private.raise_error('PAYLOAD_INVALID', _problem);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_payload_schemas from public;

comment on function jobq_private.check_payload_schemas is
'Refuses a batch of new jobs when a payload does not fit the schema of its kind.';
