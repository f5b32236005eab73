-- Purpose: how the jobs of a kind are delivered: HTTP, KAFKA or REDIS_STREAM; null when
-- a worker's handler does them.
-- Invariant: one probe of a small index. Raises: nothing.
create or replace function jobq_private.endpoint_type(kind text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select e.type from jobq_private.endpoint as e where e.endpoint = endpoint_type.kind
    );
end
$$;

revoke all on function jobq_private.endpoint_type from public;

comment on function jobq_private.endpoint_type is
'How the jobs of a kind are delivered, or null when a handler does them.';
