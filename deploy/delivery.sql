-- Deploy jobq:delivery to pg
-- Made by sql/snapshot.py from sql/delivery/: edit that.
begin;
set local role jobq_owner;

-- Purpose: open a change of a definition: check its name and what the caller expects.
-- Invariant: definitions change one at a time, so that what one refers to stays while
-- it is put; the lock holds until the transaction ends, and no reader waits for it.
-- Raises: 22004, 22023, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _exists boolean;
begin
    if begin_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', begin_definition.type);
    end if;
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    if begin_definition.mode = 'create' and _exists then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            '%s %s', begin_definition.type, begin_definition.name
        ));
    elsif begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    elsif begin_definition.mode not in ('put', 'create', 'update')
        or begin_definition.mode is null
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'mode must be put, create or update');
    end if;
end
$$;

revoke all on function jobq_private.begin_definition from public;

comment on function jobq_private.begin_definition is
'Opens a change of a definition: checks its name and what the caller expects.';

-- Purpose: why a config, a schema or an endpoint's spec cannot be kept, or null.
-- Invariant: 1 MiB as text and 150 levels, whatever payloads may have: each is shown as a whole
-- in lists and versions. Raises: nothing.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.definition_problem(value jsonb)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return (jobq_private.value_problem(
        definition_problem.value, jobq_private.json_size(definition_problem.value), 1048576, 150
    ))[2];
end
$$;

revoke all on function jobq_private.definition_problem from public;

comment on function jobq_private.definition_problem is
'Says why a config, a schema or an endpoint''s spec cannot be kept, or null.';

-- Purpose: refuse the spec of an endpoint with fields that are unknown, missing or wrong.
-- Invariant: what a delivery reads is checked here, but for what templates bring.
-- Raises: 22023.
create or replace function jobq_private.check_endpoint_spec(type text, spec jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _fields constant jsonb := '{
        "HTTP": {
            "url": "url", "method": "method", "headers": "headers", "body_template": "any",
            "timeout_ms": "milliseconds", "expected_status_codes": "statuses",
            "sign_with": "text"
        },
        "KAFKA": {
            "bootstrap_servers": "servers", "topic": "topic", "key_template": "text",
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

revoke all on function jobq_private.check_endpoint_spec from public;

comment on function jobq_private.check_endpoint_spec is
'Refuses the spec of an endpoint with fields that are unknown, missing or wrong.';

-- Purpose: refuse names that are no endpoints.
-- Invariant: reads only. Raises: JQ007.
create or replace function jobq_private.check_endpoints(endpoints text[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _unknown constant text := (
        select n.name
        from unnest(check_endpoints.endpoints) as n (name)
        where not exists (
            select from jobq_private.endpoint as e where e.endpoint = n.name
        )
        limit 1
    );
begin
    if _unknown is not null then
        perform jobq_private.raise_error('ENDPOINT_NOT_FOUND', format(
            'endpoint %s', _unknown
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_endpoints from public;

comment on function jobq_private.check_endpoints is
'Refuses names that are no endpoints.';

-- Purpose: refuse an endpoint whose templates refer to what is not there, or may not
-- stand where they stand.
-- Invariant: config may stand everywhere; input and job in templates, headers and after the
-- host of a URL; secrets where they are sent to the target or address it. Raises: JQ007.
create or replace function jobq_private.check_references(
    endpoint text, spec jsonb, config_entries jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _to_target constant text :=
        '^(url|headers|body_template|value_template|fields_template|bootstrap_servers'
        || '|redis_url|options|sign_with)$';
    _job constant text :=
        '^(id|attempt|created_at|run_at|endpoint|queue|idempotency_key)$';
    _problem text;
begin
    select format('endpoint %s: %s in %s %s', check_references.endpoint, r.written,
        r.field, case
            when r.namespace is null
                then 'is not input, config, secret or job and a path, within {{ and }}'
            when r.namespace = 'name' then 'is the name of a member: references stand in values'
            when r.namespace = 'config' then 'is not in the config'
            when r.namespace in ('input', 'job') then 'cannot be used there'
            when r.is_optional then 'cannot have a default'
            when r.field !~ _to_target then 'cannot be used there'
            else 'is not a secret'
        end)
    into _problem
    from jobq_private.template_references(check_references.spec) as r
    where case r.namespace
        when 'config' then
            r.is_optional
            or config_entries #> string_to_array(r.path, '.') is not null
        when 'input' then jobq_private.takes_input(r.field, spec)
        when 'job' then jobq_private.takes_input(r.field, spec) and r.path ~ _job
        when 'secret' then
            r.field ~ _to_target
            and not r.is_optional
            and exists (select from jobq_private.secret as s where s.secret = r.path)
        else false
    end is not true
    order by r.field, r.written
    limit 1;

    if found then
        perform jobq_private.raise_error('TEMPLATE_RESOLUTION_FAILED', _problem);
    end if;
end
$$;

revoke all on function jobq_private.check_references from public;

comment on function jobq_private.check_references is
'Refuses an endpoint whose templates refer to what is not there.';

-- Purpose: the rate by which an endpoint gets at most so many deliveries in any second.
-- Invariant: what may start together is taken off what starts in a second, so that no second has
-- more. Raises: nothing.
create or replace function jobq_private.endpoint_rate(
    max_per_second double precision,
    out rate_limit integer, out rate_period interval, out rate_burst integer
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _even double precision;
begin
    if max_per_second is not null then
        rate_burst := least(1 + floor(max_per_second / 20), 32767);
        _even := max_per_second - rate_burst + 1;
        rate_period := make_interval(secs => case when _even < 1000 then 1000 else 1 end);
        rate_limit := greatest(
            1, floor(_even * case when _even < 1000 then 1000 else 1 end)
        );
    end if;
end
$$;

revoke all on function jobq_private.endpoint_rate from public;

comment on function jobq_private.endpoint_rate is
'The rate by which an endpoint gets at most so many deliveries in any second.';

-- Purpose: check what an endpoint refers to, and give its payload schema.
-- Invariant: called under the lock of begin_definition(). Raises: JQ007.
create or replace function jobq_private.endpoint_schema(
    endpoint text, spec jsonb, payload_spec text, config text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _schema jsonb;
    _entries jsonb;
begin
    if endpoint_schema.payload_spec is not null then
        select p.schema into _schema
        from jobq_private.payload_spec as p
        where p.payload_spec = endpoint_schema.payload_spec;
        if not found then
            perform jobq_private.raise_error('INVALID_PAYLOAD_SPEC_REF', format(
                'payload_spec %s', endpoint_schema.payload_spec
            ));
        end if;
    end if;
    if endpoint_schema.config is not null then
        select c.entries into _entries
        from jobq_private.config as c
        where c.config = endpoint_schema.config;
        if not found then
            perform jobq_private.raise_error('INVALID_CONFIG_REF', format(
                'config %s', endpoint_schema.config
            ));
        end if;
    end if;
    perform jobq_private.check_references(
        endpoint_schema.endpoint, endpoint_schema.spec, coalesce(_entries, '{}')
    );
    return _schema;
end
$$;

revoke all on function jobq_private.endpoint_schema from public;

comment on function jobq_private.endpoint_schema is
'Checks what an endpoint refers to, and gives its payload schema.';

-- Purpose: how a job is delivered: HTTP, KAFKA or REDIS_STREAM; null when a worker's handler
-- does it.
-- Invariant: what the job was made for, whatever has become of the endpoint; a job without
-- a delivery_version costs nothing. Raises: nothing.
create or replace function jobq_private.endpoint_type(kind text, delivery_version integer)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if endpoint_type.delivery_version is null then
        return null;
    end if;
    return (
        select v.document ->> 'type'
        from jobq_private.definition_version as v
        where v.type = 'delivery' and v.name = endpoint_type.kind
        and v.version = endpoint_type.delivery_version
    );
end
$$;

revoke all on function jobq_private.endpoint_type from public;

comment on function jobq_private.endpoint_type is
'How a job is delivered, or null when a handler does it.';

-- Purpose: whether the text of a URL can be sent: its length, and a host beyond ASCII as
-- clients encode it.
-- Invariant: a reference stands for a letter, since nobody knows yet what it brings.
-- Raises: nothing.
create or replace function jobq_private.is_sendable_url(url text)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Signs, blanks and what cannot be seen, by their blocks: no name of a host has them.
    _no_letter constant text := '[%_\u0080-\u00b6\u00b8-\u00bf\u00d7\u00f7\u034f\u061c\u115f\u1160'
        || '\u17b4\u17b5\u180b-\u180f\u2000-\u2bff\u2e00-\u2fff\u3000\u3001\ue000-\uf8ff'
        || '\ufe00-\ufe0f\ufeff\ufff0-\uffff\U0001f000-\U0001faff]';
    _misplaced constant text := '(^|[.])(-|(?![Xx][Nn]--)..--)|-([.]|$)';
    _host text := substring(
        regexp_replace(is_sendable_url.url, '\{\{.*?\}\}', 'x', 'g')
        from '^[Hh][Tt][Tt][Pp][Ss]?://([^]/?#:[]*)'
    );
begin
    return length(is_sendable_url.url) <= 8192 and (
        _host is null
        or octet_length(_host) = length(_host)
        or (
            _host is nfkc normalized
            and _host !~ _no_letter
            and _host !~ _misplaced
        )
    );
end
$$;

revoke all on function jobq_private.is_sendable_url from public;

comment on function jobq_private.is_sendable_url is
'Says whether the text of a URL can be sent: its length, and a host beyond ASCII.';

-- Purpose: why a JSON Schema (draft 2020-12) cannot be used to check the input of endpoints,
-- or null.
-- Invariant: what it refuses, clients and deliveries refuse too, but for a schema that says that it
-- is of another draft; a reference that leads round for ever is left to them. Raises: nothing.
create or replace function jobq_private.json_schema_problem(schema jsonb)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text;
begin
    if schema ->> '$schema' !~ '^https?://json-schema[.]org/draft/2020-12/schema#?$' then
        return '$.$schema: must be https://json-schema.org/draft/2020-12/schema, or left out:'
            || ' write the schema as that draft has it';
    end if;
    with recursive part (value, path, is_map, depth) as (
        select json_schema_problem.schema, '$', false, 1
        union all
        select
            c.value, format('%s.%s', p.path, c.key), c.meaning = 'an object of schemas',
            p.depth + 1
        from part as p
        cross join lateral (
            select o.key, o.value, case when not p.is_map then m.meaning else 'a schema' end
            from jsonb_each(case jsonb_typeof(p.value) when 'object' then p.value end) as o
            cross join lateral jobq_private.schema_keyword(o.key, o.value) as m
            where p.is_map or m.is_met
            union all
            select (a.n - 1)::text, a.value, 'a schema'
            from jsonb_array_elements(
                case jsonb_typeof(p.value) when 'array' then p.value end
            ) with ordinality as a (value, n)
        ) as c (key, value, meaning)
        where c.meaning in ('a schema', 'an array of schemas', 'an object of schemas')
        and jsonb_typeof(c.value) in ('object', 'array') and p.depth <= 65
    )
    select format('%s.%s: %s', p.path, k.key, case
        when p.depth > 64 then 'nested too deeply'
        when not m.is_met then 'must be ' || m.meaning
        when k.key ~ '[rR]ef$' then 'there is no such place'
        else n.problem
    end)
    into _problem
    from part as p
    cross join lateral jsonb_each(
        case when jsonb_typeof(p.value) = 'object' and not p.is_map then p.value end
    ) as k
    left join lateral jobq_private.schema_keyword(k.key, k.value) as m on true
    left join lateral (
        select jobq_private.shared_pattern_problem(t.pattern)
        from (
            select k.value #>> '{}' where k.key = 'pattern'
            union all
            select o.name
            from jsonb_object_keys(case when m.is_met then k.value end) as o (name)
            where k.key = 'patternProperties'
        ) as t (pattern)
        where m.is_met and jobq_private.shared_pattern_problem(t.pattern) is not null
        limit 1
    ) as n (problem) on true
    where p.depth > 64 or not m.is_met or n.problem is not null
    or k.key = '$ref' and k.value #>> '{}' ~ '^#/[^%]*$'
        and not schema @? '$.**."$id"'
        and json_schema_problem.schema #> (
            select array_agg(replace(replace(t.step, '~1', '/'), '~0', '~') order by t.n)
            from string_to_table(substr(k.value #>> '{}', 3), '/') with ordinality as t (step, n)
        ) is null
    limit 1;
    return _problem;
end
$$;

revoke all on function jobq_private.json_schema_problem from public;

comment on function jobq_private.json_schema_problem is
'Says why a JSON Schema cannot be used to check the input of endpoints, or null.';

-- Purpose: which jobs wait to be delivered by an older version of their endpoint that refers to a
-- secret, or to what a config has not among entries; null when there are none.
-- Invariant: reads versions first, and jobs only of those that refer to it. A payload spec and a
-- config that are gone are needed by nobody: jobs are delivered by their versions. Raises: nothing.
create or replace function jobq_private.needed_by_jobs(
    namespace text, name text, entries jsonb default null
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _jobs text;
begin
    select format('jobs of endpoint %s, version %s: %s', u.endpoint, u.version, u.written)
    into _jobs
    from (
        select
            v.name as endpoint, v.version as delivery_version, r.written,
            v.document ->> 'endpoint_version' as version
        from jobq_private.definition_version as v
        cross join lateral jobq_private.template_references(v.document -> 'spec') as r
        where v.type = 'delivery'
        and r.namespace = needed_by_jobs.namespace
        and case r.namespace
            when 'secret' then r.path = needed_by_jobs.name
            else v.document ->> 'config' = needed_by_jobs.name
                and not r.is_optional
                and entries #> string_to_array(r.path, '.') is null
        end
        offset 0
    ) as u
    where exists (
        select from jobq_private.job as j
        where j.kind = u.endpoint and j.delivery_version = u.delivery_version
    )
    limit 1;
    return _jobs;
end
$$;

revoke all on function jobq_private.needed_by_jobs from public;

comment on function jobq_private.needed_by_jobs is
'Says which jobs wait to be delivered by a version that refers to a secret or a config.';

-- Purpose: whether a claim must leave a job alone, since its endpoint is paused; the job is then
-- put aside, once, in place of being leased.
-- Invariant: stamp_transition() asks for deliveries alone. The job is out of the way of later
-- claims, and what was claimed is decided by the endpoint's row: who resumes it has that
-- row's lock, so that nothing is put aside that resume_endpoint() does not see; while
-- somebody changes the row, the job only stays where it is. The endpoint's last test goes.
-- Raises: nothing.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from jobq_private.endpoint as e
        where e.endpoint = park_delivery.endpoint
        and e.paused_at is not null
        and e.test_job_id is distinct from park_delivery.job_id
    ) then
        return false;
    end if;
    perform from jobq_private.endpoint as e
    where e.endpoint = park_delivery.endpoint and e.paused_at is not null
    for share skip locked;
    if found then
        insert into jobq_private.parked_job as p (job_id, endpoint, run_at)
        values (park_delivery.job_id, park_delivery.endpoint, park_delivery.run_at)
        on conflict on constraint parked_job_pkey do update
        set run_at = excluded.run_at
        where excluded.run_at <> jobq_private.parked_until();
        update jobq_private.job as j
        set run_at = jobq_private.parked_until()
        where j.job_id = park_delivery.job_id;
    end if;
    return true;
end
$$;

revoke all on function jobq_private.park_delivery from public;

comment on function jobq_private.park_delivery is
'Says whether a claim must leave a job alone whose endpoint is paused, and puts it aside.';

-- Purpose: when jobs are due that wait for a paused endpoint: the last day that a job may have.
-- Invariant: a constant. Raises: nothing.
create or replace function jobq_private.parked_until()
returns timestamptz
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select timestamptz '9999-12-30 00:00:00 UTC'
$$;

revoke all on function jobq_private.parked_until from public;

comment on function jobq_private.parked_until is
'When jobs are due that wait for a paused endpoint.';

-- Purpose: count the version of an endpoint, and give the jobs that it gets from now on what they
-- are delivered by: the endpoint, its payload spec and its retries, as one version under one number.
-- Invariant: jobs take the number from the same row of kind as the schema that they are
-- checked by, so it is exact whatever commits meanwhile. No endpoint, no version. Called
-- under the lock of begin_definition(). The endpoint's limits are those of its kind. Raises: nothing.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
    _document jsonb;
begin
    select jobq_private.record_version('endpoint', e.endpoint, jsonb_build_object(
        'type', e.type, 'spec', e.spec, 'payload_spec', e.payload_spec,
        'config', e.config, 'max_concurrency', e.max_concurrency,
        'max_per_second', e.max_per_second, 'queue', k.queue,
        'retry_policy', jobq_private.retry_document(k)
    ))
    into _version
    from jobq_private.endpoint as e
    join jobq_private.kind as k on k.kind = e.endpoint
    where e.endpoint = pin_delivery.endpoint;
    update jobq_private.endpoint as e
    set version = _version, updated_at = now()
    where e.endpoint = pin_delivery.endpoint and e.version <> _version;

    _document := (
        select jsonb_build_object(
            'endpoint_version', e.version, 'type', e.type, 'spec', e.spec,
            'config', e.config, 'payload_spec', e.payload_spec,
            'payload_spec_version', p.version, 'max_concurrency', e.max_concurrency,
            'max_per_second', e.max_per_second, 'retry', jsonb_build_object(
                'strategy', k.retry_strategy, 'initial_delay', k.retry_initial_delay,
                'max_delay', k.retry_max_delay, 'jitter', k.retry_jitter
            )
        )
        from jobq_private.endpoint as e
        join jobq_private.kind as k on k.kind = e.endpoint
        left join jobq_private.payload_spec as p on p.payload_spec = e.payload_spec
        where e.endpoint = pin_delivery.endpoint
    );
    update jobq_private.kind as k
    set delivery_version = jobq_private.record_version(
        'delivery', pin_delivery.endpoint, _document
    )
    where k.kind = pin_delivery.endpoint and _document is not null;

    update jobq_private.kind as k
    set
        max_running = coalesce(e.max_concurrency, k.max_running),
        rate_limit = coalesce(r.rate_limit, k.rate_limit),
        rate_period = coalesce(r.rate_period, k.rate_period),
        rate_burst = coalesce(r.rate_burst, k.rate_burst)
    from jobq_private.endpoint as e
    cross join lateral jobq_private.endpoint_rate(e.max_per_second) as r
    where e.endpoint = pin_delivery.endpoint
    and k.kind = e.endpoint
    and num_nonnulls(e.max_concurrency, e.max_per_second) > 0;

    insert into jobq_private.pinned_definition (endpoint, type, name)
    select pin_delivery.endpoint, t.type, _document ->> t.type
    from unnest('{payload_spec,config}'::text[]) as t (type)
    where _document ->> t.type is not null
    on conflict do nothing;
end
$$;

revoke all on function jobq_private.pin_delivery from public;

comment on function jobq_private.pin_delivery is
'Counts the version of an endpoint, and gives the jobs that an endpoint gets from now on what they are delivered by.';

-- Purpose: keep a version of a definition, and give its number.
-- Invariant: a number stands for one document for ever, also when the definition is
-- deleted and made again; the same document again is no new version. Called between
-- begin_definition() and the end of its transaction. Raises: nothing.
create or replace function jobq_private.record_version(type text, name text, document jsonb)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _last jobq_private.definition_version;
begin
    select v.* into _last
    from jobq_private.definition_version as v
    where v.type = record_version.type and v.name = record_version.name
    order by v.version desc
    limit 1;

    if _last.document = record_version.document then
        return _last.version;
    end if;
    insert into jobq_private.definition_version (type, name, version, document)
    values (
        record_version.type, record_version.name, coalesce(_last.version, 0) + 1,
        record_version.document
    );
    return coalesce(_last.version, 0) + 1;
end
$$;

revoke all on function jobq_private.record_version from public;

comment on function jobq_private.record_version is
'Keeps a version of a definition, and gives its number.';

-- Purpose: say that a payload spec, config, secret or endpoint is not there.
-- Invariant: always raises.
-- Raises: 22004, 22023, JQ007.
create or replace function jobq_private.refuse_definition(type text, name text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _codes constant text[] := array['PAYLOAD_SPEC_NOT_FOUND', 'CONFIG_NOT_FOUND',
        'SECRET_NOT_FOUND', 'ENDPOINT_NOT_FOUND'];
    _types constant text[] := '{payload_spec,config,secret,endpoint}'::text[];
    _place integer := array_position(_types, refuse_definition.type);
begin
    if refuse_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif _place is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'type must be payload_spec, config, secret or endpoint');
    end if;
    perform jobq_private.raise_error(_codes[_place], format(
        '%s %s', refuse_definition.type, refuse_definition.name
    ));
end
$$;

revoke all on function jobq_private.refuse_definition from public;

comment on function jobq_private.refuse_definition is
'Raises that a payload spec, config, secret or endpoint is not there.';

-- Purpose: the retries of an endpoint as its document has them.
-- Invariant: reads only its argument. Raises: nothing.
create or replace function jobq_private.retry_document(kind jobq_private.kind)
returns jsonb
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'max_attempts', (kind).max_attempts,
        'backoff', (kind).retry_strategy,
        'initial_delay_ms', jobq_private.milliseconds((kind).retry_initial_delay),
        'max_delay_ms', jobq_private.milliseconds((kind).retry_max_delay),
        'jitter', (kind).retry_jitter
    )
$$;

revoke all on function jobq_private.retry_document from public;

comment on function jobq_private.retry_document is
'Returns the retries of an endpoint as its document has them.';

-- Purpose: what a keyword of JSON Schema (draft 2020-12) must be, and whether a value is that.
-- Invariant: an unknown keyword has no row; strict paths, so that an array is never taken for
-- its elements. Raises: nothing.
create or replace function jobq_private.schema_keyword(
    keyword text, value jsonb, out meaning text, out is_met boolean
)
returns record
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    select c.meaning, value @? c.path into meaning, is_met
    from (
        values
        ('$ref $dynamicRef', 'a place in the schema, or in the draft''s own',
            jsonpath 'strict $ ? (@ like_regex "^#" || @ starts with "https://json-schema.org/draft/2020-12/")'),
        ('$id', 'an address without a fragment', 'strict $ ? (@ like_regex "^[^#]*#?$")'),
        ('$anchor $dynamicAnchor', 'a plain name',
            'strict $ ? (@ like_regex "^[A-Za-z_][-A-Za-z0-9._]*$")'),
        ('$schema $comment title description format pattern contentEncoding'
            || ' contentMediaType', 'a text', 'strict $ ? (@.type() == "string")'),
        ('deprecated readOnly writeOnly uniqueItems', 'true or false',
            'strict $ ? (@.type() == "boolean")'),
        ('minimum maximum exclusiveMinimum exclusiveMaximum', 'a number',
            'strict $ ? (@.type() == "number")'),
        ('multipleOf', 'a number above 0', 'strict $ ? (@ > 0)'),
        ('minLength maxLength minItems maxItems minProperties maxProperties minContains'
            || ' maxContains', 'a whole number, 0 or more',
            'strict $ ? (@ >= 0 && @ == @.floor())'),
        ('enum examples', 'an array', 'strict $ ? (@.type() == "array")'),
        ('required', 'an array of different names',
            'strict $ ? (@.type() == "array" && !exists (@[*] ? (@.type() != "string")))'),
        ('dependentRequired', 'an object of arrays of names',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "array"
                || exists (@[*] ? (@.type() != "string")))))'),
        ('type', 'a type, or an array of different ones',
            'strict $ ? (@ like_regex "^(object|array|string|number|integer|boolean|null)$"
                || (@.type() == "array" && exists (@[*]) && !exists (@[*] ? (!(@ like_regex
                    "^(object|array|string|number|integer|boolean|null)$")))))'),
        ('not if then else items contains additionalProperties propertyNames contentSchema'
            || ' unevaluatedItems unevaluatedProperties', 'a schema',
            'strict $ ? (@.type() == "object" || @.type() == "boolean")'),
        ('allOf anyOf oneOf prefixItems', 'an array of schemas',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "object" && @.type() != "boolean")))'),
        ('$defs definitions dependentSchemas patternProperties properties',
            'an object of schemas',
            'strict $ ? (@.type() == "object"
                && !exists (@.* ? (@.type() != "object" && @.type() != "boolean")))')
    ) as c (keywords, meaning, path)
    where schema_keyword.keyword = any(string_to_array(c.keywords, ' '));
    if schema_keyword.keyword in ('required', 'type') and jsonb_typeof(value) = 'array' then
        is_met := is_met and jsonb_array_length(value) = (
            select count(distinct e.item) from jsonb_array_elements(value) as e (item)
        );
    end if;
end
$$;

revoke all on function jobq_private.schema_keyword from public;

comment on function jobq_private.schema_keyword is
'Returns what a keyword of JSON Schema must be, and whether a value is that.';

-- Purpose: why clients and deliveries, which match by RE2, cannot use a pattern, or null.
-- Invariant: what it lets through that RE2 does not know is found by clients when they put a
-- payload spec, and by deliveries. Raises: nothing.
create or replace function jobq_private.shared_pattern_problem(pattern text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Escapes as they are, and without what stands in brackets.
    _bare constant text := regexp_replace(
        shared_pattern_problem.pattern, '\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]', 'x', 'g'
    );
    -- And without escaped characters.
    _plain constant text := regexp_replace(
        _bare, '\\[pP]\{\^?\w+\}|\\.', 'x', 'g'
    );
begin
    if regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[1-9k]' then
        return 'back references are not matched in linear time';
    elsif _plain ~ '\(\?<?[=!]' then
        return 'lookarounds are not matched in linear time';
    elsif _plain ~ '\(\?(?!:|P?<\w+>|[imsU-]+[:)])' or _plain ~ '^\*|[*+?}]\+' then
        return 'RE2 does not know this group or repetition';
    elsif regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[^\W_aAbBCdDEfnpPQrsStvwWxz0]' then
        return 'RE2 does not know this escape';
    elsif _plain ~ '\{(\d{5,}|[2-9]\d{3}|1\d{2}[1-9]|1\d[1-9]\d|1[1-9]\d{2})[,}]' then
        return 'RE2 repeats at most 1000 times';
    elsif _bare !~ '\\[pPCQExz0]|\(\?P?<|\{[\d,]*\d{3}' then
        perform '' ~ shared_pattern_problem.pattern;
    end if;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;

revoke all on function jobq_private.shared_pattern_problem from public;

comment on function jobq_private.shared_pattern_problem is
'Says why clients and deliveries cannot use a pattern, or null.';

-- Purpose: what a field of an endpoint's spec must be, and whether a value is that.
-- Invariant: strict paths, so that an array is never taken for its elements. Only the path that is
-- asked for is read, and no group of an address captures: either would cost a tenth of a second.
-- Raises: nothing.
create or replace function jobq_private.spec_field(
    class text, value jsonb, out meaning text, out is_met boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Parts of an address, for like_regex; a template may stand for each of them.
    _label constant text :=
        '(?:[^[:cntrl:][:space:][:punct:]]|[-_%]|[{][{][^}]*[}][}]){1,63}';
    _host constant text := format('(?:[[][0-9A-Fa-f:.]+[]]|%1$s(?:[.]%1$s)*[.]?)', _label);
    _port constant text :=
        '(?:0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]'
        || '|6553[0-5])|[{][{][^}]*[}][}])';
    _number constant text := '(?:[0-9]{0,9}|[{][{][^}]*[}][}])';
    _octet constant text := '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
begin
    select c.meaning, value @? c.path::jsonpath into meaning, is_met
    from (
        values
        ('any', 'any JSON', '$'),
        ('text', 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
        ('fields', 'an object with a member, or a template that gives one',
            'strict $ ? ((@.type() == "object" && exists (@.*))
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('texts', 'an object of texts',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string")))'),
        ('headers', 'an object of ASCII texts without line breaks, under names of HTTP'
            || ' that are not content-length or transfer-encoding, each once',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (
                    !(@.key like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$")
                    || @.key like_regex "^(content-length|transfer-encoding)$" flag "i"
                    || @.value like_regex "[^\\t -~]" flag "s")))'),
        ('url', 'http:// or https://, a host without a user, a port up to 65535, and a path, of'
            || ' at most 8192 characters; a host that is not taken in Unicode is in ASCII (xn--)',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^https?://%1$s(?::%2$s)?(?:(?:[/?#]|[{][{])[^[:cntrl:]]*)?$" flag "i" && (
                    !(@ like_regex "^https?://[0-9]+(?:[.][0-9]+){3}(?:[:/?#]|$)" flag "i")
                    || @ like_regex "^https?://%3$s(?:[.]%3$s){3}(?:[:/?#]|$)" flag "i"))$path$,
                _host, _port, _octet)),
        ('redis url', 'redis:// or rediss://, host, port and number of the database, or'
            || ' unix:// and a path, with no options but db, username, password, client_name'
            || ' and health_check_interval',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^(?:rediss?://(?:[^/?#@]*@)?(?:%s(?::%s)?)?(?:/%s)?|unix://(?:[^/?#@]*@)?/[^?]*)(?:[?](?:(?:db=%s|health_check_interval=%s|(?:username|password)=[^&]*|client_name=(?:[^&%%[:space:]]|[{][{][^}]*[}][}])*)(?:&|$))*)?$")$path$,
                _host, _port, _number, _number, _number)),
        ('servers', 'hosts with their ports, and commas between them',
            format($path$strict $ ? (@ like_regex "^[{][{]" || @ like_regex
                "^ *(?:%1$s) *(?:, *(?:%1$s) *)*$")$path$,
                format('(?:[A-Za-z_]+://)?%s(?::%s)?', _host, _port))),
        ('topic', 'a topic of 1 to 249 letters, digits and ._-, or a template',
            'strict $ ? (@ like_regex "^[-._0-9A-Za-z]{1,249}$" && @ != "." && @ != ".."
                || @ like_regex "[{][{]")'),
        ('kafka options', 'an object of texts that Kafka takes, under the names'
            || ' security.protocol, sasl.mechanism, sasl.username, sasl.password, ssl.ca.pem,'
            || ' ssl.certificate.pem, ssl.key.pem, ssl.key.password, client.id,'
            || ' compression.type and linger.ms; certificates and keys as PEM, and with'
            || ' sasl_plaintext or sasl_ssl a mechanism, a username and a password',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
                && !exists (@.keyvalue() ? (!(@.key like_regex
                    "^(security[.]protocol|sasl[.](mechanisms?|username|password)|ssl[.](ca[.]pem|certificate[.]pem|key[.]pem|key[.]password)|client[.]id|compression[.]type|linger[.]ms)$")
                    || !(@.value like_regex "[{][{]") && (
                        @.key == "security.protocol" && !(@.value like_regex
                            "^(sasl_)?(plaintext|ssl)$" flag "i")
                        || @.key like_regex "^sasl[.]mechanism" && !(@.value like_regex
                            "^(PLAIN|SCRAM-SHA-(256|512))$")
                        || @.key == "compression.type" && !(@.value like_regex
                            "^(none|gzip|snappy|lz4|zstd)$")
                        || @.key == "linger.ms" && !(@.value like_regex
                            "^[0-9]{1,5}([.][0-9]{1,9})?$")
                        || @.key like_regex "^ssl[.](ca|certificate)[.]pem$" && !(@.value
                            like_regex "-----BEGIN [A-Z0-9 ]*CERTIFICATE-----")
                        || @.key == "ssl.key.pem" && !(@.value
                            like_regex "-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"))))
                && (!exists (@.keyvalue() ? (@.key == "security.protocol"
                        && @.value like_regex "^sasl_" flag "i"))
                    || exists (@.keyvalue() ? (@.key like_regex "^sasl[.]mechanisms?$"))
                    && exists (@.keyvalue() ? (@.key == "sasl.username" && @.value != ""))
                    && exists (@.keyvalue() ? (@.key == "sasl.password" && @.value != ""))))'),
        ('boolean', 'true or false', 'strict $ ? (@.type() == "boolean")'),
        ('method', 'GET, POST, PUT, PATCH or DELETE',
            'strict $ ? (@ like_regex "^(GET|POST|PUT|PATCH|DELETE)$")'),
        ('acks', '"0", "1" or "all"', 'strict $ ? (@ == "0" || @ == "1" || @ == "all")'),
        ('milliseconds', 'a whole number from 1 to 3600000',
            'strict $ ? (@ >= 1 && @ <= 3600000 && @ == @.floor())'),
        ('count', 'a whole number from 1, or a template that gives one',
            'strict $ ? ((@ >= 1 && @ <= 1000000000000 && @ == @.floor())
                || @ like_regex "^[{][{].*[}][}]$")'),
        ('statuses', 'an array of HTTP status codes from 200 to 599',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "number"
                    || !(@ >= 200 && @ <= 599 && @ == @.floor()))))')
    ) as c (class, meaning, path)
    where c.class = spec_field.class;
    if class = 'headers' and is_met then
        select count(*) = count(distinct lower(k.key)) into is_met
        from jsonb_object_keys(value) as k (key);
    elsif class = 'url' and is_met then
        is_met := jobq_private.is_sendable_url(value #>> '{}');
    end if;
end
$$;

revoke all on function jobq_private.spec_field from public;

comment on function jobq_private.spec_field is
'Returns what a field of an endpoint''s spec must be, and whether a value is that.';

-- Purpose: store an endpoint that was checked, with its secrets.
-- Invariant: called under the lock of begin_definition(), its kind being there. pin_delivery()
-- counts its version, for its retries and its queue are part of it.
-- Raises: nothing of its own.
create or replace function jobq_private.store_endpoint(
    endpoint text, type text, spec jsonb, payload_spec text, config text,
    max_concurrency integer, max_per_second double precision
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.endpoint (
        endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second,
        version
    )
    values (
        store_endpoint.endpoint, store_endpoint.type, store_endpoint.payload_spec,
        store_endpoint.config, store_endpoint.spec, store_endpoint.max_concurrency,
        store_endpoint.max_per_second, 0
    )
    on conflict on constraint endpoint_pkey do update
    set
        type = excluded.type, payload_spec = excluded.payload_spec,
        config = excluded.config, spec = excluded.spec,
        max_concurrency = excluded.max_concurrency,
        max_per_second = excluded.max_per_second;

    delete from jobq_private.endpoint_secret as s
    where s.endpoint = store_endpoint.endpoint;
    insert into jobq_private.endpoint_secret (endpoint, secret)
    select distinct store_endpoint.endpoint, r.path
    from jobq_private.template_references(store_endpoint.spec) as r
    where r.namespace = 'secret';
end
$$;

revoke all on function jobq_private.store_endpoint from public;

comment on function jobq_private.store_endpoint is
'Stores an endpoint that was checked, with its secrets.';

-- Purpose: store the kind of an endpoint: its queue and its retries, and nothing else.
-- Invariant: called under the lock of begin_definition(), so no endpoint comes or goes meanwhile;
-- a kind that is no endpoint's stays as it is, also one that comes at the same time.
-- Raises: 22023, JQ004.
create or replace function jobq_private.store_endpoint_kind(
    endpoint text, queue text, max_attempts integer, timeout interval,
    retry_strategy text, retry_initial_delay interval, retry_max_delay interval,
    retry_jitter double precision
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    insert into jobq_private.kind as k (
        kind, queue, max_attempts, timeout, retry_strategy, retry_initial_delay,
        retry_max_delay, retry_jitter
    )
    values (
        store_endpoint_kind.endpoint, store_endpoint_kind.queue,
        store_endpoint_kind.max_attempts, store_endpoint_kind.timeout,
        store_endpoint_kind.retry_strategy, store_endpoint_kind.retry_initial_delay,
        store_endpoint_kind.retry_max_delay, store_endpoint_kind.retry_jitter
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        max_running = null, rate_limit = null, rate_period = null, rate_burst = null,
        updated_at = now()
    where exists (select from jobq_private.endpoint as e where e.endpoint = k.kind);
    if not found then
        perform jobq_private.raise_error('KIND_EXISTS', format(
            'kind %s', store_endpoint_kind.endpoint
        ));
    end if;
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.kind', _violated);
end
$$;

revoke all on function jobq_private.store_endpoint_kind from public;

comment on function jobq_private.store_endpoint_kind is
'Stores the kind of an endpoint: its queue and its retries.';

-- Purpose: whether a field of an endpoint's spec may hold what an enqueuer chose.
-- Invariant: in a URL only after its host, which is never from input. Raises: nothing.
create or replace function jobq_private.takes_input(field text, spec jsonb)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    _before text;
begin
    if takes_input.field <> 'url' then
        return takes_input.field ~ '^(headers|\w+_template)$';
    end if;
    _before := regexp_replace(
        takes_input.spec ->> 'url', '\{\{\s*(input|job)\M.*$', ''
    );
    _before := regexp_replace(_before, '^\{\{.*?\}\}', 'https://x');
    return regexp_replace(_before, '\{\{.*?\}\}', 'x', 'g') ~* '^https?://[^/?#]+[/?#]';
end
$$;

revoke all on function jobq_private.takes_input from public;

comment on function jobq_private.takes_input is
'Says whether a field of an endpoint''s spec may hold what an enqueuer chose.';

-- Purpose: what the templates of an endpoint's spec refer to: field, namespace, path, and
-- whether there is a default.
-- Invariant: a reference that cannot be read, and braces that lack their other half, have no
-- namespace; }} has it too where it closes braces of JSON before it; braces in the name of a
-- member, where none may stand, have the namespace name; sign_with names a secret without
-- braces. Raises: nothing.
create or replace function jobq_private.template_references(spec jsonb)
returns table (
    field text, namespace text, path text, written text, is_optional boolean
)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
begin
    return query
    select distinct
        s.key, r.parts[1], ltrim(r.parts[2], '.'), format('{{%s}}', m.found[1]),
        r.parts[3] is not null
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "string")'
    ) as t (text)
    cross join lateral regexp_matches(t.text #>> '{}', '\{\{(.*?)\}\}', 'g') as m (found)
    left join lateral regexp_match(m.found[1],
        '^\s*(input|config|secret|job)((?:\.[\w-]+)*)'
        || '\s*(?:\?\?\s*("[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\])\s*)?$'
    ) as r (parts) on r.parts[2] <> '' or r.parts[1] = 'input'
    union
    select s.key, null, null, m.found[1], false
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "string")'
    ) as t (text)
    cross join lateral regexp_replace(t.text #>> '{}', '\{\{.*?\}\}', ' ', 'g') as p (rest)
    cross join lateral regexp_match(p.rest, case
        when p.rest ~ '\{\{' then '\{\{.{0,60}'
        when regexp_count(p.rest, '\{') < regexp_count(p.rest, '\}') then '.{0,60}\}\}'
    end) as m (found)
    where m.found is not null
    union
    select s.key, 'name', null, n.name #>> '{}', false
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "object").keyvalue().key'
    ) as n (name)
    where n.name #>> '{}' ~ '\{\{'
    union
    select 'sign_with', 'secret', template_references.spec ->> 'sign_with',
        template_references.spec ->> 'sign_with', false
    where template_references.spec ? 'sign_with';
end
$$;

revoke all on function jobq_private.template_references from public;

comment on function jobq_private.template_references is
'Returns what the templates of an endpoint''s spec refer to.';

-- Purpose: the version of a definition that held at a moment; its first, before that.
-- Invariant: versions of one definition follow each other in time. Raises: nothing.
create or replace function jobq_private.version_at(type text, name text, moment timestamptz)
returns jobq_private.definition_version
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _version jobq_private.definition_version;
begin
    select v.* into _version
    from jobq_private.definition_version as v
    where v.type = version_at.type and v.name = version_at.name
    order by
        v.created_at <= version_at.moment desc,
        case when v.created_at <= version_at.moment then -v.version else v.version end
    limit 1;
    return _version;
end
$$;

revoke all on function jobq_private.version_at from public;

comment on function jobq_private.version_at is
'Returns the version of a definition that held at a moment.';

-- Purpose: payload specs, configs, secrets and endpoints as JSON documents.
-- Invariant: no value of a secret, encrypted or not, is in it. Raises: nothing.
create or replace view jobq_private.definition as
select
    'payload_spec' as type,
    p.payload_spec as name,
    json_build_object(
        'name', p.payload_spec, 'schema', p.schema, 'version', p.version,
        'created_at', p.created_at, 'updated_at', p.updated_at
    ) as item
from jobq_private.payload_spec as p
union all
select
    'config',
    c.config,
    json_build_object(
        'name', c.config, 'values', c.entries, 'version', c.version,
        'created_at', c.created_at, 'updated_at', c.updated_at
    )
from jobq_private.config as c
union all
select
    'secret',
    s.secret,
    json_build_object(
        'name', s.secret, 'version', s.version,
        'created_at', s.created_at, 'updated_at', s.updated_at
    )
from jobq_private.secret as s
union all
select
    'endpoint',
    e.endpoint,
    json_build_object(
        'name', e.endpoint, 'type', e.type, 'payload_spec', e.payload_spec,
        'config', e.config, 'spec', e.spec,
        'retry_policy', jobq_private.retry_document(k),
        'queue', k.queue, 'max_concurrency', e.max_concurrency,
        'max_per_second', e.max_per_second, 'paused_at', e.paused_at,
        'pause_reason', e.pause_reason, 'version', e.version,
        'created_at', e.created_at, 'updated_at', e.updated_at
    )
from jobq_private.endpoint as e
join jobq_private.kind as k on k.kind = e.endpoint;

revoke all on table jobq_private.definition from public;

comment on view jobq_private.definition is
'Payload specs, configs, secrets and endpoints as JSON documents.';

-- Purpose: delete a payload spec, config, secret or endpoint; its versions stay.
-- Invariant: refused while an endpoint refers to it, a secret also while jobs wait to be
-- delivered by an older version that does, and an endpoint while live jobs or schedules of
-- it exist; with an endpoint goes its kind.
-- Raises: 22004, 22023, JQ007, JQ008.
-- Never: DEFINITION_EXISTS.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Example: select jobq.delete_definition('config', 'unused');
create or replace function jobq.delete_definition(type text, name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _type constant text := delete_definition.type;
    _name constant text := delete_definition.name;
    _endpoint text;
    _jobs text;
begin
    perform jobq_private.begin_definition(_type, _name, 'update');
    select d.endpoint into _endpoint
    from (
        select 'payload_spec' as type, e.payload_spec as name, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'config', e.config, e.endpoint
        from jobq_private.endpoint as e
        union all
        select 'secret', s.secret, s.endpoint
        from jobq_private.endpoint_secret as s
    ) as d
    where d.type = _type and d.name = _name
    order by d.endpoint
    limit 1;
    if found then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format('endpoint %s', _endpoint));
    elsif _type = 'secret' then
        _jobs := jobq_private.needed_by_jobs('secret', _name);
        if _jobs is not null then
            perform jobq_private.raise_error('HAS_DEPENDENTS', _jobs);
        end if;
        delete from jobq_private.secret as s where s.secret = _name;
    elsif _type = 'payload_spec' then
        delete from jobq_private.payload_spec as p where p.payload_spec = _name;
    elsif _type = 'config' then
        delete from jobq_private.config as c where c.config = _name;
    else
        perform jobq_private.forget_kind(_name);
    end if;
end
$$;

revoke all on function jobq.delete_definition from public;
grant execute on function jobq.delete_definition to jobq_operator;

comment on function jobq.delete_definition is
'Deletes a payload spec, config, secret or endpoint; refused while something depends on it.';

-- Purpose: how deliveries to an endpoint went of late: how many succeeded, how long they took,
-- and by what the others failed.
-- Invariant: of the newest 1,000 attempts that ended in the period, read by two indexes, so
-- the cost does not grow. An attempt that was given back is none. Raises: 22004, 22023, JQ007.
-- Argument endpoint: its name.
-- Argument period: how far to look back, 1 s to 30 days.
-- Column since: since when the attempts are counted: the first of them, where there are 1,000.
-- Column attempts: how many ended.
-- Column succeeded: how many of them did.
-- Column failed: how many did not.
-- Column success_rate: the share of those that succeeded, 0 to 1; null for none.
-- Column p50_ms: half of them took no longer, from the claim to the end.
-- Column p95_ms: of twenty attempts nineteen took no longer.
-- Column p99_ms: of a hundred attempts 99 took no longer.
-- Column failures: an object: by its code, how many failed.
-- Example: select * from jobq.endpoint_stats('send-welcome');
create or replace function jobq.endpoint_stats(
    endpoint text, period interval default interval '1 hour'
)
returns table (
    since timestamptz, attempts bigint, succeeded bigint, failed bigint,
    success_rate double precision, p50_ms bigint, p95_ms bigint, p99_ms bigint,
    failures jsonb
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _since timestamptz;
begin
    if num_nulls(endpoint_stats.endpoint, endpoint_stats.period) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint or period');
    elsif endpoint_stats.period not between interval '1 s' and interval '30 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'period must be from 1 s to 30 days'
        );
    end if;
    perform jobq_private.check_endpoints(array[endpoint_stats.endpoint]);
    _since := now() - endpoint_stats.period;
    return query
    with ended as materialized (
        select e.finished_at, e.took, e.code
        from (
            (
                select a.finished_at, a.finished_at - a.claimed_at as took, null as code
                from jobq_private.job_archive as a
                where a.kind = endpoint_stats.endpoint
                and a.delivery_version is not null
                and a.state = 'succeeded'
                and a.finished_at >= _since
                order by a.finished_at desc
                limit 1000
            )
            union all
            (
                select f.finished_at, f.finished_at - f.started_at,
                    coalesce(f.error_code, 'ERROR')
                from jobq_private.attempt as f
                where f.endpoint = endpoint_stats.endpoint
                and f.state in ('retrying', 'dead')
                and f.finished_at >= _since
                order by f.finished_at desc
                limit 1000
            )
        ) as e
        order by e.finished_at desc
        limit 1000
    )
    select
        case when count(*) = 1000 then min(e.finished_at) else _since end,
        count(*), count(*) filter (where e.code is null), count(e.code),
        avg((e.code is null)::integer)::double precision,
        jobq_private.milliseconds(percentile_disc(0.5) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.95) within group (order by e.took)),
        jobq_private.milliseconds(percentile_disc(0.99) within group (order by e.took)),
        (
            select coalesce(jsonb_object_agg(c.code, c.jobs), '{}')
            from (
                select x.code, count(*) as jobs
                from ended as x
                where x.code is not null
                group by x.code
            ) as c
        )
    from ended as e;
end
$$;

revoke all on function jobq.endpoint_stats from public;
grant execute on function jobq.endpoint_stats to jobq_operator, jobq_reader;

comment on function jobq.endpoint_stats is
'Tells how the deliveries to an endpoint went of late: rate of success, latency, failures.';

-- Purpose: all that a worker needs to deliver jobs of an endpoint, or no row when the kind
-- is no endpoint.
-- Invariant: delivery_version is the job's, and never stands for anything else; null is
-- what a new job would get. Secrets are as they are now, encrypted; the config as it is
-- now, or, for a job_id in a later attempt, as it was when the first began.
-- Raises: 22004.
-- Argument delivery_version: the version that the job was made for; null means the one
-- that a new job would get.
-- Argument job_id: the job, for the config that its first attempt ran with.
-- Returns: one row; none when the kind is no endpoint.
-- Column spec: where to and in what shape, its templates as they were declared.
-- Column version: the version of the endpoint.
-- Column schema: the JSON Schema of the payload; null without a payload spec.
-- Column config_entries: the values of the config; null without one.
-- Column config_version: the config's version.
-- Column config_valid_from: when that was declared.
-- Column secrets: an object: by its name, for each secret the key_id and the ciphertext
-- in base64.
-- Example: select type, spec, version from jobq.get_delivery('send-welcome');
create or replace function jobq.get_delivery(
    kind text, delivery_version integer default null, job_id uuid default null
)
returns table (
    type text, spec text, version integer, schema jsonb, config_entries text,
    config_version integer, config_valid_from timestamptz, secrets jsonb,
    max_concurrency integer, max_per_second double precision
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _started_at timestamptz := coalesce(
        jobq_private.execution_started_at(get_delivery.job_id), now()
    );
begin
    if get_delivery.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    end if;
    return query
    select
        v.document ->> 'type', v.document ->> 'spec',
        (v.document ->> 'endpoint_version')::integer, s.document -> 'schema',
        c.document ->> 'values', c.version, c.created_at,
        (
            select jsonb_object_agg(x.secret, jsonb_build_object(
                'key_id', x.key_id, 'ciphertext', encode(x.ciphertext, 'base64')
            ))
            from jobq_private.template_references(v.document -> 'spec') as r
            join jobq_private.secret as x on x.secret = r.path
            where r.namespace = 'secret'
        ),
        (v.document ->> 'max_concurrency')::integer,
        (v.document ->> 'max_per_second')::double precision
    from jobq_private.endpoint as e
    join jobq_private.kind as k on k.kind = e.endpoint
    join jobq_private.definition_version as v
        on v.type = 'delivery' and v.name = e.endpoint
        and v.version = coalesce(get_delivery.delivery_version, k.delivery_version)
    left join jobq_private.definition_version as s
        on s.type = 'payload_spec' and s.name = v.document ->> 'payload_spec'
        and s.version = (v.document ->> 'payload_spec_version')::integer
    left join lateral jobq_private.version_at(
        'config', v.document ->> 'config', _started_at
    ) as c on true
    where e.endpoint = get_delivery.kind;
end
$$;

revoke all on function jobq.get_delivery from public;
grant execute on function jobq.get_delivery to jobq_worker, jobq_operator;

comment on function jobq.get_delivery is
'Returns all that a worker needs to deliver jobs of an endpoint, its secrets encrypted.';

-- Purpose: every secret as it is encrypted, for its rotation to another key.
-- Invariant: nothing here can be read without the key. Raises: nothing.
-- Example: select secret, version, key_id from jobq.list_ciphertexts();
create or replace function jobq.list_ciphertexts()
returns table (secret text, version integer, key_id text, ciphertext bytea)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select s.secret, s.version, s.key_id, s.ciphertext
    from jobq_private.secret as s
    order by s.secret;
end
$$;

revoke all on function jobq.list_ciphertexts from public;
grant execute on function jobq.list_ciphertexts to jobq_operator;

comment on function jobq.list_ciphertexts is
'Returns every secret as it is encrypted, for its rotation to another key.';

-- Purpose: the endpoints that a worker cannot deliver, for want of a driver or a key.
-- Invariant: what they are now decides, not what older versions were. Raises: 22004.
-- Argument drivers: the types that the worker can deliver: HTTP, KAFKA, REDIS_STREAM.
-- Argument key_ids: the ids of the keys that it has, of those under which secrets are encrypted.
-- Returns: one row an endpoint, by name.
-- Column type: HTTP, KAFKA or REDIS_STREAM.
-- Column secret: the first that it has no key for; null where a driver is missing.
-- Column key_id: the id of that key.
-- Example: select endpoint, type, secret from jobq.list_undeliverable('{HTTP}', '{}');
create or replace function jobq.list_undeliverable(drivers text[], key_ids text[])
returns table (endpoint text, type text, secret text, key_id text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(list_undeliverable.drivers, list_undeliverable.key_ids) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'drivers or key_ids');
    end if;
    return query
    select distinct on (e.endpoint) e.endpoint, e.type, s.secret, s.key_id
    from jobq_private.endpoint as e
    left join (
        jobq_private.endpoint_secret as r
        join jobq_private.secret as s on s.secret = r.secret
    ) on r.endpoint = e.endpoint
        and e.type = any(list_undeliverable.drivers)
        and s.key_id <> all(list_undeliverable.key_ids)
    where s.secret is not null or e.type <> all(list_undeliverable.drivers)
    order by e.endpoint, s.secret;
end
$$;

revoke all on function jobq.list_undeliverable from public;
grant execute on function jobq.list_undeliverable to jobq_worker, jobq_operator;

comment on function jobq.list_undeliverable is
'Returns the endpoints that a worker cannot deliver, for want of a driver or a key.';

-- Purpose: the versions of a payload spec, config, secret or endpoint, the newest first.
-- Invariant: of a secret there is only when it changed. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Column document: what was declared; {} for a secret.
-- Example: select * from jobq.list_versions('config', 'email-service');
create or replace function jobq.list_versions(type text, name text)
returns table (version integer, document jsonb, created_at timestamptz)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        v.version,
        case when v.type = 'secret' then '{}'::jsonb else v.document end,
        v.created_at
    from jobq_private.definition_version as v
    where v.type = list_versions.type and v.name = list_versions.name
    order by v.version desc;
    if not found then
        perform jobq_private.refuse_definition(list_versions.type, list_versions.name);
    end if;
end
$$;

revoke all on function jobq.list_versions from public;
grant execute on function jobq.list_versions to jobq_operator, jobq_reader;

comment on function jobq.list_versions is
'Returns the versions of a payload spec, config, secret or endpoint, the newest first.';

-- Purpose: a page of payload specs, configs, secrets or endpoints by name; cursor as in
-- page_jobs().
-- Invariant: no value of a secret is in it. Raises: nothing.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument max_definitions: at most so many.
-- Example: select * from jobq.page_definitions('endpoint');
create or replace function jobq.page_definitions(
    type text, after text default null, max_definitions integer default 50
)
returns table (item json, cursor text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select t.item, case when t.n < count(*) over () then t.name end
    from (
        select d.item, d.name, row_number() over (order by d.name) as n
        from jobq_private.definition as d
        where d.type = page_definitions.type
        and (page_definitions.after is null or d.name > page_definitions.after)
        order by d.name
        limit page_definitions.max_definitions + 1
    ) as t
    order by t.n
    limit page_definitions.max_definitions;
end
$$;

revoke all on function jobq.page_definitions from public;
grant execute on function jobq.page_definitions to jobq_operator, jobq_reader;

comment on function jobq.page_definitions is
'Returns a page of payload specs, configs, secrets or endpoints as JSON documents.';

-- Purpose: stop deliveries to an endpoint; what runs goes on, and enqueueing too.
-- Invariant: no claim that begins after the commit delivers to it, but for test_endpoint().
-- Jobs that become due are put aside, each once, so they are in nobody's way; until
-- resume_endpoint() their run_at is the 30th of December 9999.
-- Raises: 22004, 22023, JQ007.
-- Argument endpoint: its name.
-- Argument reason: why, for explain() and the audit; at most 512 characters.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    elsif length(pause_endpoint.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = coalesce(pause_endpoint.reason, e.pause_reason)
    where e.endpoint = pause_endpoint.endpoint;
    if not found then
        perform jobq_private.raise_error(
            'ENDPOINT_NOT_FOUND', format('endpoint %s', pause_endpoint.endpoint)
        );
    end if;
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;

revoke all on function jobq.pause_endpoint from public;
grant execute on function jobq.pause_endpoint to jobq_operator;

comment on function jobq.pause_endpoint is
'Stops deliveries to an endpoint; running ones go on, and its jobs wait.';

-- Purpose: declare a config, or replace it: values that the templates of endpoints name.
-- Invariant: attempts that start later use it; what an endpoint refers to is not taken
-- away, nor what an older version does that jobs wait to be delivered by.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument mode: put creates or replaces; create refuses a name that exists, update one
-- that does not.
-- Returns: the config as show_definition() returns it.
-- Example: select jobq.put_config('email-service', '{"api_base_url": "https://api.example.org"}');
create or replace function jobq.put_config(
    config text, entries jsonb, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
    _problem constant text := jobq_private.definition_problem(put_config.entries);
    _jobs text;
begin
    perform jobq_private.begin_definition('config', put_config.config, put_config.mode);
    if jsonb_typeof(put_config.entries) is distinct from 'object' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'entries must be an object');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'entries: ' || _problem);
    end if;
    perform jobq_private.check_references(e.endpoint, e.spec, put_config.entries)
    from jobq_private.endpoint as e
    where e.config = put_config.config;
    _jobs := jobq_private.needed_by_jobs('config', put_config.config, put_config.entries);
    if _jobs is not null then
        perform jobq_private.raise_error('TEMPLATE_RESOLUTION_FAILED', _jobs);
    end if;
    _version := jobq_private.record_version('config', put_config.config,
        jsonb_build_object('values', put_config.entries));

    insert into jobq_private.config as c (config, entries, version)
    values (put_config.config, put_config.entries, _version)
    on conflict on constraint config_pkey do update
    set entries = excluded.entries, version = excluded.version, updated_at = now()
    where c.version <> excluded.version;
    return jobq.show_definition('config', put_config.config);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'config: 1 to 128 lowercase letters, digits, hyphens and underscores');
        return null;
end
$$;

revoke all on function jobq.put_config from public;
grant execute on function jobq.put_config to jobq_operator;

comment on function jobq.put_config is
'Declares a config, values that the templates of endpoints refer to, or replaces it.';

-- Purpose: declare an endpoint, or replace it: a kind whose jobs are delivered to an HTTP
-- target, a Kafka topic or a Redis stream.
-- Invariant: one kind and one endpoint of the same name, and no kind that put_kind() has
-- declared; what its templates refer to is there. Jobs that exist keep the version they were
-- made under.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Argument max_attempts: after how many failed deliveries a job is dead; 1 to 10000.
-- Argument queue: the queue of its jobs; null means the default.
-- Argument max_concurrency: how many of its jobs are delivered at a time by all workers, 1 to
-- 10000; null means 20 by each worker.
-- Argument max_per_second: how many of its jobs are delivered in a second by all workers, 0.001
-- to 1000000; null means no limit.
-- Argument payload_spec: the payload spec of its jobs; null means any payload.
-- Argument config: the config that its templates refer to; null means none.
-- Returns: the endpoint as show_definition() returns it.
-- Example: select jobq.put_endpoint('send-welcome', 'HTTP', '{"url": "{{config.api_base_url}}/welcome",
--     "body_template": {"user_id": "{{input.user_id}}"}}', config => 'email-service');
create or replace function jobq.put_endpoint(
    endpoint text,
    type text,
    spec jsonb,
    payload_spec text default null,
    config text default null,
    max_attempts integer default 1,
    retry_strategy text default 'exponential',
    retry_initial_delay interval default '1 s',
    retry_max_delay interval default '60 s',
    retry_jitter double precision default 0.25,
    queue text default null,
    max_concurrency integer default null,
    max_per_second double precision default null,
    mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _schema jsonb;
    _violated text;
begin
    perform jobq_private.begin_definition('endpoint', put_endpoint.endpoint,
        put_endpoint.mode);
    if put_endpoint.type is null or put_endpoint.spec is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'type or spec');
    end if;
    perform jobq_private.check_endpoint_spec(put_endpoint.type, put_endpoint.spec);
    _schema := jobq_private.endpoint_schema(
        put_endpoint.endpoint, put_endpoint.spec, put_endpoint.payload_spec,
        put_endpoint.config
    );
    perform jobq_private.store_endpoint_kind(
        put_endpoint.endpoint, put_endpoint.queue, put_endpoint.max_attempts,
        interval '10 s' + interval '1 ms' * coalesce(
            (put_endpoint.spec ->> 'timeout_ms')::numeric, 10000
        ),
        put_endpoint.retry_strategy, put_endpoint.retry_initial_delay,
        put_endpoint.retry_max_delay, put_endpoint.retry_jitter
    );
    perform jobq_private.set_payload_schema(put_endpoint.endpoint, _schema);
    perform jobq_private.store_endpoint(
        put_endpoint.endpoint, put_endpoint.type, put_endpoint.spec,
        put_endpoint.payload_spec, put_endpoint.config, put_endpoint.max_concurrency,
        put_endpoint.max_per_second
    );
    perform jobq_private.pin_delivery(put_endpoint.endpoint);
    return jobq.show_definition('endpoint', put_endpoint.endpoint);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.endpoint', _violated);
        return null;
end
$$;

revoke all on function jobq.put_endpoint from public;
grant execute on function jobq.put_endpoint to jobq_operator;

comment on function jobq.put_endpoint is
'Declares an endpoint, a kind whose jobs are delivered over HTTP, to Kafka or to a Redis stream, or replaces it.';

-- Purpose: declare a payload spec, or replace it: a JSON Schema of what endpoints take.
-- Invariant: jobs that exist keep the version they were made under. Where the database
-- understands all of a schema, enqueue() refuses what does not fit; delivery always does.
-- Raises: 22004, 22023, JQ004, JQ006, JQ007.
-- Never: CONFIG_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Argument schema: a JSON Schema (draft 2020-12).
-- Returns: the payload spec as show_definition() returns it.
-- Example: select jobq.put_payload_spec('welcome', '{"type": "object", "required": ["user_id"]}');
create or replace function jobq.put_payload_spec(
    payload_spec text, schema jsonb, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
    _problem text;
begin
    perform jobq_private.begin_definition('payload_spec', put_payload_spec.payload_spec,
        put_payload_spec.mode);
    if jsonb_typeof(put_payload_spec.schema) is distinct from 'object' then
        perform jobq_private.raise_error('SCHEMA_INVALID', 'schema must be an object');
    end if;
    _problem := coalesce(
        jobq_private.definition_problem(put_payload_spec.schema),
        jobq_private.json_schema_problem(put_payload_spec.schema)
    );
    if _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    _version := jobq_private.record_version('payload_spec', put_payload_spec.payload_spec,
        jsonb_build_object('schema', put_payload_spec.schema));

    insert into jobq_private.payload_spec as p (payload_spec, schema, version)
    values (put_payload_spec.payload_spec, put_payload_spec.schema, _version)
    on conflict on constraint payload_spec_pkey do update
    set schema = excluded.schema, version = excluded.version, updated_at = now()
    where p.version <> excluded.version;

    perform
        jobq_private.set_payload_schema(e.endpoint, put_payload_spec.schema),
        jobq_private.pin_delivery(e.endpoint)
    from jobq_private.endpoint as e
    where e.payload_spec = put_payload_spec.payload_spec;
    return jobq.show_definition('payload_spec', put_payload_spec.payload_spec);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'payload_spec: 1 to 128 lowercase letters, digits, hyphens and underscores');
        return null;
end
$$;

revoke all on function jobq.put_payload_spec from public;
grant execute on function jobq.put_payload_spec to jobq_operator;

comment on function jobq.put_payload_spec is
'Declares a payload spec, the JSON Schema of what endpoints take, or replaces it.';

-- Purpose: store a secret that its owner has encrypted, or replace it.
-- Invariant: neither the secret nor its key is ever here; versions keep no ciphertext.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the secret as show_definition() returns it, without its value.
-- Example: select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1');
create or replace function jobq.put_secret(
    secret text, ciphertext bytea, key_id text, mode text default 'put'
)
returns json
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _version integer;
begin
    perform jobq_private.begin_definition('secret', put_secret.secret, put_secret.mode);
    if put_secret.ciphertext is null or put_secret.key_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ciphertext or key_id');
    end if;
    _version := jobq_private.record_version('secret', put_secret.secret,
        jsonb_build_object('sha256', encode(sha256(put_secret.ciphertext), 'hex')));

    insert into jobq_private.secret as s (secret, ciphertext, key_id, version)
    values (put_secret.secret, put_secret.ciphertext, put_secret.key_id, _version)
    on conflict on constraint secret_pkey do update
    set
        ciphertext = excluded.ciphertext, key_id = excluded.key_id,
        version = excluded.version, updated_at = now();
    return jobq.show_definition('secret', put_secret.secret);
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'secret: 1 to 128 lowercase letters, digits, hyphens and underscores, '
            || 'encrypted in 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

revoke all on function jobq.put_secret from public;
grant execute on function jobq.put_secret to jobq_operator;

comment on function jobq.put_secret is
'Stores an encrypted secret, or replaces it.';

-- Purpose: allow deliveries to a paused endpoint again, and wake its workers.
-- Invariant: what was put aside gets its run_at back, and so its place in the order; what
-- was given another one meanwhile keeps that. Resuming an endpoint that is not paused
-- changes nothing.
-- Raises: 22004, JQ007.
-- Argument endpoint: its name.
-- Returns: how many jobs were put aside.
-- Example: select jobq.resume_endpoint('send-welcome');
create or replace function jobq.resume_endpoint(endpoint text)
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _parked uuid[];
    _due_at timestamptz[];
    _ids uuid[];
    _queues text[];
begin
    if resume_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    end if;
    perform jobq_private.check_endpoints(array[resume_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set paused_at = null, pause_reason = null
    where e.endpoint = resume_endpoint.endpoint and e.paused_at is not null;
    if not found then
        return 0;
    end if;

    with parked as (
        delete from jobq_private.parked_job as p
        where p.endpoint = resume_endpoint.endpoint
        returning p.job_id, p.run_at
    )
    select array_agg(p.job_id), array_agg(p.run_at) into _parked, _due_at from parked as p;
    _ids := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_parked)
        and j.run_at = jobq_private.parked_until()
        order by j.job_id
        for update
    );
    with due as (
        update jobq_private.job as j
        set run_at = p.run_at
        from unnest(_parked, _due_at) as p (job_id, run_at)
        where j.job_id = p.job_id and p.job_id = any (_ids)
        returning j.queue
    )
    select array_agg(distinct d.queue) into _queues from due as d;
    perform jobq_private.call_lanes(_ids);
    perform jobq_private.wake(coalesce(_queues, '{}'));
    perform jobq_private.record_audit('resume_endpoint', resume_endpoint.endpoint);
    return cardinality(_ids);
end
$$;

revoke all on function jobq.resume_endpoint from public;
grant execute on function jobq.resume_endpoint to jobq_operator;

comment on function jobq.resume_endpoint is
'Allows deliveries to a paused endpoint again, and returns how many jobs it had put aside.';

-- Purpose: replace the ciphertext of a secret by one of the same value under another key.
-- Invariant: only the version that was read is replaced, and stays that version.
-- Raises: 22004, 22023, JQ007.
-- Never: DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Argument version: the version that was read, as list_ciphertexts() gives it.
-- Returns: whether it was replaced; false when it has been changed meanwhile.
-- Example: select jobq.rotate_secret('api_key', 1, decode(repeat('01', 44), 'hex'), 'key-2');
create or replace function jobq.rotate_secret(
    secret text, version integer, ciphertext bytea, key_id text
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('secret', rotate_secret.secret, 'update');
    update jobq_private.secret as s
    set ciphertext = rotate_secret.ciphertext, key_id = rotate_secret.key_id
    where s.secret = rotate_secret.secret and s.version = rotate_secret.version;
    return found;
exception
    when check_violation or not_null_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'ciphertext of 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

revoke all on function jobq.rotate_secret from public;
grant execute on function jobq.rotate_secret to jobq_operator;

comment on function jobq.rotate_secret is
'Replaces the ciphertext of a secret by one under another key, if its version still holds.';

-- Purpose: one payload spec, config, secret or endpoint as a JSON document.
-- Invariant: no value of a secret is in it. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument name: the definition's name.
-- Returns: a JSON object: name, version, created_at and updated_at; of a payload spec
-- schema, of a config values, of an endpoint type, spec, payload_spec, config, queue,
-- max_concurrency, max_per_second, paused_at, pause_reason and retry_policy (max_attempts,
-- backoff, initial_delay_ms, max_delay_ms, jitter).
-- Example: select jobq.show_definition('endpoint', 'send-welcome');
create or replace function jobq.show_definition(type text, name text)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _item json;
begin
    select d.item into _item
    from jobq_private.definition as d
    where d.type = show_definition.type and d.name = show_definition.name;
    if not found then
        perform jobq_private.refuse_definition(show_definition.type, show_definition.name);
    end if;
    return _item;
end
$$;

revoke all on function jobq.show_definition from public;
grant execute on function jobq.show_definition to jobq_operator, jobq_reader;

comment on function jobq.show_definition is
'Returns a payload spec, config, secret (without its value) or endpoint as a document.';

-- Purpose: have one job delivered to an endpoint at once, also while that is paused.
-- Invariant: a job like any other, with one attempt and the highest priority; of a paused
-- endpoint only the last test is delivered.
-- Raises: 22004, 22023, JQ005, JQ006, JQ007, JQ010.
-- Never: DEDUP_CONFLICT, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
-- Argument endpoint: its name.
-- Returns: the id of the job, whose result is what the target answered.
-- Example: select jobq.test_endpoint('send-welcome', '{"user_id": "u1"}');
create or replace function jobq.test_endpoint(endpoint text, payload jsonb default '{}')
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job_id uuid;
begin
    if test_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    end if;
    perform jobq_private.check_endpoints(array[test_endpoint.endpoint]);
    _job_id := jobq.enqueue(
        test_endpoint.endpoint, test_endpoint.payload, priority => 32767,
        max_attempts => 1, metadata => '{"test": true}'
    );
    update jobq_private.endpoint as e
    set test_job_id = _job_id
    where e.endpoint = test_endpoint.endpoint;
    return _job_id;
end
$$;

revoke all on function jobq.test_endpoint from public;
grant execute on function jobq.test_endpoint to jobq_operator;

comment on function jobq.test_endpoint is
'Has one job delivered to an endpoint at once, also while that is paused, and returns its id.';

commit;
