-- Purpose: refuse an endpoint's spec with unknown, missing or invalid fields.
-- Invariant: checks that every field that a delivery reads is present and of its type.
-- Whether an address is reachable, and whether Kafka accepts its settings, shows only
-- when they are used.
-- Raises: 22023.
create or replace function jobq_private.check_endpoint_spec(type text, spec jsonb)
returns void
language plpgsql
stable
parallel safe
as $$
declare
    _fields constant jsonb := '{
        "HTTP": {
            "url": "url", "method": "method", "headers": "headers", "body_template": "any",
            "timeout_ms": "milliseconds", "expected_status_codes": "statuses",
            "sign_with": "text"
        },
        "KAFKA": {
            "bootstrap_servers": "text", "topic": "topic", "key_template": "text",
            "value_template": "any", "headers": "texts", "acks": "acks",
            "timeout_ms": "milliseconds", "options": "kafka options"
        },
        "REDIS_STREAM": {
            "redis_url": "redis url", "stream": "text", "fields_template": "fields",
            "max_len": "count", "approximate_trimming": "boolean",
            "deliver_once": "boolean", "timeout_ms": "milliseconds"
        }
    }'::jsonb;
    _needed constant jsonb := '{
        "HTTP": ["url"], "KAFKA": ["bootstrap_servers", "topic"],
        "REDIS_STREAM": ["redis_url", "stream"]
    }'::jsonb;
    _problem text := jobq_private.definition_problem(check_endpoint_spec.spec);
begin
    if not _fields ? check_endpoint_spec.type then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'type must be HTTP, KAFKA or REDIS_STREAM');
    elsif jsonb_typeof(check_endpoint_spec.spec) <> 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'spec must be an object');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'spec: ' || _problem);
    end if;
    select format('spec.%s is missing', n.name) into _problem
    from jsonb_array_elements_text(_needed -> check_endpoint_spec.type) as n (name)
    where not check_endpoint_spec.spec ? n.name
    limit 1;
    if not found then
        select format('spec.%s: %s', s.key, coalesce('must be ' || m.meaning, format(
            'known are %s', (
                select string_agg(k.key, ', ')
                from jsonb_object_keys(_fields -> check_endpoint_spec.type) as k (key)
            )
        )))
        into _problem
        from jsonb_each(check_endpoint_spec.spec) as s
        left join jsonb_each_text(_fields -> check_endpoint_spec.type) as f on f.key = s.key
        left join lateral jobq_private.spec_field(f.value, s.value) as m on true
        where f.key is null or not m.is_met
        limit 1;
    end if;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;
