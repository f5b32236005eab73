-- Purpose: hook: why the payload of a new job does not fit the declaration of its kind, or null.
-- Called for kinds that declare a schema, or where a key or a cost is in the payload.
create or replace function jobq_private.on_check(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text
language sql
immutable
as $$
    select null::text
$$;
