-- Purpose: how a job is delivered: HTTP, KAFKA or REDIS_STREAM; null if a worker's
-- handler runs it.
-- Invariant: as when the job was created, even if the endpoint has changed since; costs
-- nothing for a job without a delivery_version.
create or replace function jobq_private.endpoint_type(kind text, delivery_version integer)
returns text language plpgsql stable strict as $$
begin
    return (
        select v.document ->> 'type'
        from jobq_private.definition_version as v
        where v.type = 'delivery' and v.name = endpoint_type.kind
        and v.version = endpoint_type.delivery_version
    );
end
$$;
