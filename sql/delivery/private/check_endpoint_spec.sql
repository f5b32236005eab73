-- Purpose: refuse an endpoint's spec with unknown, missing or invalid fields.
-- Invariant: checks that every field that a delivery reads is present and of its type, as the
-- table spec_field says. Whether an address is reachable, and whether Kafka accepts its settings,
-- shows only when they are used. Raises: 22023.
create or replace function jobq_private.check_endpoint_spec(type text, spec jsonb)
returns void language plpgsql stable as $$
declare
    _problem text;
begin
    perform jobq_private.check_argument(case
        when check_endpoint_spec.type not in ('HTTP', 'KAFKA', 'REDIS_STREAM')
        then 'type must be HTTP, KAFKA or REDIS_STREAM'
        when jsonb_typeof(check_endpoint_spec.spec) <> 'object' then 'spec must be an object'
        else 'spec: ' || jobq_private.definition_problem(check_endpoint_spec.spec)
    end);
    select case
        when f.field is null then format('spec.%s is unknown', s.key)
        when s.key is null then format('spec.%s is missing', f.field)
        else format('spec.%s: must be %s', f.field, f.meaning)
    end
    into _problem
    from (
        select * from jobq_private.spec_field as d where d.type = check_endpoint_spec.type
    ) as f
    full join jsonb_each(check_endpoint_spec.spec) as s on s.key = f.field
    where f.field is null
    or case when s.key is null then f.is_needed else not s.value @? f.path end
    or (s.key = 'url' and length(s.value #>> '{}') > 8192)
    or (f.type = 'HTTP' and s.key = 'headers' and exists (
        select from jsonb_path_query(s.value, '$.keyvalue().key', silent => true) as h (name)
        group by lower(h.name #>> '{}')
        having count(*) > 1
    ))
    limit 1;
    perform jobq_private.check_argument(_problem);
end
$$;
