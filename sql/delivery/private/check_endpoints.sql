-- Purpose: refuse names that are not endpoints.
-- Invariant: reads only. Raises: JQ007.
create or replace function jobq_private.check_endpoints(endpoints text[])
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_problem('ENDPOINT_NOT_FOUND', (
        select 'endpoint ' || n.name
        from unnest(check_endpoints.endpoints) as n (name)
        where not exists (select from jobq_private.endpoint as e where e.endpoint = n.name)
        limit 1
    ));
end
$$;
