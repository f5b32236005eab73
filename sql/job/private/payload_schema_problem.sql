-- Purpose: which payload of a batch of new jobs does not fit the schema of its kind, and why; null
-- where all do.
-- Invariant: looks at the jobs only where a kind has a schema; a JSON Schema that
-- the database cannot enforce by itself is one for its extension. Raises: nothing.
create or replace function jobq_private.payload_schema_problem(jobs jobq_private.new_job[])
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
    select format('job %s: %s', j.ordinal, v.violation)
    from unnest(payload_schema_problem.jobs) as j
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
    and exists (
        select from jobq_private.kind as k
        where k.payload_schema is not null or k.json_schema is not null
    )
    limit 1
$$;

revoke all on function jobq_private.payload_schema_problem from public;

comment on function jobq_private.payload_schema_problem is
'Says which payload of a batch of new jobs does not fit the schema of its kind, and why.';
