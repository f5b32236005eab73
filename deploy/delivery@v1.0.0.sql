-- Deploy jobq:delivery to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: begin a change of a definition: check its name and the expected version.
-- Invariant: definitions change one at a time, so that referenced definitions cannot
-- disappear meanwhile; the lock lasts until the transaction ends, and no reader waits
-- for it.
-- Raises: 22004, 22023, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void
language plpgsql
as $$
declare
    _exists boolean;
begin
    perform jobq_private.check_given(begin_definition.type, num_nulls(begin_definition.name));
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition_document as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    perform jobq_private.check_argument(case
        when begin_definition.mode in ('put', 'create', 'update') is not true
        then 'mode must be put, create or update'
    end);
    if begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    end if;
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when begin_definition.mode = 'create' and _exists
        then begin_definition.type || ' ' || begin_definition.name
    end);
end
$$;

-- Purpose: refuse an endpoint's spec with unknown, missing or invalid fields.
-- Invariant: checks that every field that a delivery reads is present and of its type,
-- as the table spec_field says. Whether an address is reachable, and whether Kafka
-- accepts its settings, shows only when they are used.
-- Raises: 22023.
create or replace function jobq_private.check_endpoint_spec(type text, spec jsonb)
returns void
language plpgsql
stable
as $$
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

-- Purpose: refuse names that are not endpoints.
-- Invariant: reads only. Raises: JQ007.
create or replace function jobq_private.check_endpoints(endpoints text[])
returns void
language plpgsql
stable
as $$
begin
    perform jobq_private.check_problem('ENDPOINT_NOT_FOUND', (
        select 'endpoint ' || n.name
        from unnest(check_endpoints.endpoints) as n (name)
        where not exists (select from jobq_private.endpoint as e where e.endpoint = n.name)
        limit 1
    ));
end
$$;

-- Purpose: refuse an endpoint with templates that refer to missing definitions, or use
-- a namespace where it is not allowed.
-- Invariant: config is allowed everywhere; input and job in templates, headers and
-- after the host of a URL; secrets in fields that are sent to the target or address it.
-- Raises: JQ007.
create or replace function jobq_private.check_references(
    endpoint text, spec jsonb, config_entries jsonb
)
returns void
language plpgsql
stable
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
                then 'is not {{input.path}}, {{config.path}}, {{secret.name}} or {{job.name}}'
            when r.namespace = 'name' then 'is the name of a member: references are allowed only in values'
            when r.namespace = 'config' then 'is not in the config'
            when r.namespace in ('input', 'job') then 'cannot be used here'
            when r.is_optional then 'cannot have a default'
            when r.field !~ _to_target then 'cannot be used here'
            else 'is not a secret'
        end)
    into _problem
    from jobq_private.template_references(check_references.spec) as r
    left join jobq_private.definition as s on s.type = r.namespace and s.name = r.path
    where case r.namespace
        when 'config' then
            r.is_optional or config_entries #> string_to_array(r.path, '.') is not null
        when 'input' then jobq_private.takes_input(r.field, spec)
        when 'job' then jobq_private.takes_input(r.field, spec) and r.path ~ _job
        when 'secret' then
            r.field ~ _to_target and not r.is_optional and s.name is not null
        else false
    end is not true
    order by r.field, r.written
    limit 1;
    perform jobq_private.check_problem('TEMPLATE_RESOLUTION_FAILED', _problem);
end
$$;

-- Purpose: the reason why a config, schema or endpoint spec cannot be stored, or null.
-- Invariant: at most 1 MiB as text and 150 levels, independent of the limits of
-- payloads, because lists and versions show each as a whole.
-- Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.definition_problem(value jsonb)
returns text
language sql
immutable
as $$
    select (jobq_private.value_problem(definition_problem.value, 1048576, 150))[2]
$$;

-- Purpose: the rate that allows an endpoint a given number of deliveries in any second.
-- Invariant: subtracts the burst from the rate, so that no second has more.
create or replace function jobq_private.endpoint_rate(
    max_per_second double precision,
    out rate_limit integer, out rate_period interval, out rate_burst integer
)
language plpgsql
immutable
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

-- Purpose: how a job is delivered: HTTP, KAFKA or REDIS_STREAM; null if a worker's
-- handler runs it.
-- Invariant: as when the job was created, even if the endpoint has changed since; costs
-- nothing for a job without a delivery_version.
create or replace function jobq_private.endpoint_type(kind text, delivery_version integer)
returns text
language plpgsql
stable
strict
as $$
begin
    return (
        select v.document ->> 'type'
        from jobq_private.definition_version as v
        where v.type = 'delivery' and v.name = endpoint_type.kind
        and v.version = endpoint_type.delivery_version
    );
end
$$;

-- Purpose: the reason why a JSON Schema (draft 2020-12) cannot be used to check the
-- input of endpoints, or null.
-- Invariant: unknown keywords are ignored. Clients and deliveries also refuse what this refuses, except schemas of
-- another draft; they detect circular references, which this does not.
create or replace function jobq_private.json_schema_problem(schema jsonb)
returns text
language plpgsql
stable
as $$
declare
    _problem text;
begin
    if schema ->> '$schema' !~ '^https?://json-schema[.]org/draft/2020-12/schema#?$' then
        return '$.$schema: must be https://json-schema.org/draft/2020-12/schema, or left out:'
            || ' use that draft';
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
            left join jobq_private.spec_field as m on m.type = 'JSON_SCHEMA' and m.field = o.key
            where p.is_map or o.value @? m.path
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
        when k.key ~ '[rR]ef$' then 'the schema has no such place'
        else n.problem
    end)
    into _problem
    from part as p
    cross join lateral jsonb_each(
        case when jsonb_typeof(p.value) = 'object' and not p.is_map then p.value end
    ) as k
    left join lateral (
        select f.meaning, k.value @? f.path and (
            k.key not in ('required', 'type')
            or jsonb_typeof(k.value) = 'string'
            or jsonb_array_length(k.value) = (
                select count(distinct e.item) from jsonb_array_elements(k.value) as e (item)
            )
        ) as is_met
        from jobq_private.spec_field as f
        where f.type = 'JSON_SCHEMA' and f.field = k.key
    ) as m on true
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

-- Purpose: an interval as a whole number of milliseconds.
-- Invariant: months count as 30 days.
create or replace function jobq_private.milliseconds(length interval)
returns bigint
language sql
immutable
strict
as $$
    select (pg_catalog.date_part('epoch', length) * 1000)::bigint
$$;

-- Purpose: the jobs that wait for delivery by an older version of their endpoint that
-- refers to a secret, or to a value missing from the new entries of a config; null if
-- there are none.
-- Invariant: reads versions first, and jobs only of versions with such a reference.
-- Deleted payload specs and configs do not matter, because jobs use their versions.
create or replace function jobq_private.needed_by_jobs(
    namespace text, name text, entries jsonb default null
)
returns text
language plpgsql
stable
as $$
begin
    return (
        select format('jobs of endpoint %s, version %s: %s', u.endpoint, u.version, u.written)
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
        limit 1
    );
end
$$;

-- Purpose: whether a claim must skip a job because its endpoint is paused; the job is
-- then postponed, once, instead of claimed.
-- Invariant: job_transition() calls this only for deliveries. A postponed job does
-- not slow down later claims. The endpoint's row decides: resume_endpoint() locks it,
-- so it sees every postponed job; while another transaction changes the row, the job
-- only stays where it is. The newest test of the endpoint passes.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean
language plpgsql
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

-- Purpose: run_at of jobs that wait for a paused endpoint: the latest date that a job
-- can have.
-- Invariant: a constant.
create or replace function jobq_private.parked_until()
returns timestamptz
language sql
immutable
as $$
    select timestamptz '9999-12-30 00:00:00 UTC'
$$;

-- Purpose: store a version of an endpoint (the endpoint, its payload spec and its
-- retries), which jobs enqueued from now on will use, and the limits of its kind.
-- Invariant: jobs take the number from the row of kind that also has their schema, so
-- both match regardless of concurrent commits. Called under the lock of
-- begin_definition(). The schema is stored where it can be enforced: for
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, clients and
-- deliveries. \b, \B and options have other meanings in PostgreSQL than in clients.
create or replace function jobq_private.pin_delivery(endpoint text)
returns void
language plpgsql
set standard_conforming_strings = on
as $$
declare
    _endpoint jobq_private.endpoint;
    _kind jobq_private.kind;
    _spec jobq_private.definition;
    _shared jsonb;
    _is_plain boolean;
begin
    select e.* into _endpoint
    from jobq_private.endpoint as e
    where e.endpoint = pin_delivery.endpoint;
    select k.* into _kind from jobq_private.kind as k where k.kind = pin_delivery.endpoint;
    select d.* into _spec
    from jobq_private.definition as d
    where d.type = 'payload_spec' and d.name = _endpoint.payload_spec;
    _shared := jsonb_build_object(
        'type', _endpoint.type, 'spec', _endpoint.spec, 'config', _endpoint.config,
        'payload_spec', _endpoint.payload_spec, 'max_concurrency', _endpoint.max_concurrency,
        'max_per_second', _endpoint.max_per_second
    );
    _endpoint.version := jobq_private.record_version(
        'endpoint', pin_delivery.endpoint, _shared || jsonb_build_object(
            'queue', _kind.queue, 'retry_policy', jobq_private.retry_document(_kind)
        )
    );
    update jobq_private.endpoint as e
    set version = _endpoint.version, updated_at = now()
    where e.endpoint = pin_delivery.endpoint and e.version <> _endpoint.version;

    _is_plain := jobq_private.schema_problem(_spec.document, '') is null
        and not _spec.document @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then _spec.document end,
        json_schema = case when not _is_plain then _spec.document end,
        max_running = _endpoint.max_concurrency, rate_limit = r.rate_limit,
        rate_period = r.rate_period, rate_burst = r.rate_burst,
        delivery_version = jobq_private.record_version(
            'delivery', pin_delivery.endpoint, _shared || jsonb_build_object(
                'endpoint_version', _endpoint.version, 'payload_spec_version', _spec.version
            )
        )
    from jobq_private.endpoint_rate(_endpoint.max_per_second) as r
    where k.kind = pin_delivery.endpoint
    returning k.* into _kind;
    insert into jobq_private.kind_retry (
        kind, version, strategy, initial_delay, max_delay, jitter
    )
    values (
        _kind.kind, _kind.delivery_version, _kind.retry_strategy, _kind.retry_initial_delay,
        _kind.retry_max_delay, _kind.retry_jitter
    )
    on conflict on constraint kind_retry_pkey do nothing;
    update jobq_private.endpoint_definition as r
    set is_current = false
    where r.endpoint = pin_delivery.endpoint;
    insert into jobq_private.endpoint_definition (endpoint, type, name)
    select pin_delivery.endpoint, d.type, d.name
    from (
        values ('payload_spec', _endpoint.payload_spec), ('config', _endpoint.config)
        union
        select r.namespace, r.path
        from jobq_private.template_references(_endpoint.spec) as r
        where r.namespace = 'secret'
    ) as d (type, name)
    where d.name is not null
    on conflict on constraint endpoint_definition_pkey do update set is_current = true;
end
$$;

-- Purpose: store a version of a definition, and return its number.
-- Invariant: a number means one document forever, even if the definition is deleted and
-- created again; an unchanged document gets no new version. Called between
-- begin_definition() and the end of its transaction.
create or replace function jobq_private.record_version(type text, name text, document jsonb)
returns integer
language plpgsql
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

-- Purpose: raise the error for a missing payload spec, config, secret or endpoint.
-- Invariant: always raises.
-- Raises: 22004, 22023, JQ007.
create or replace function jobq_private.refuse_definition(type text, name text)
returns void
language plpgsql
stable
as $$
declare
    _code constant text := case refuse_definition.type
        when 'payload_spec' then 'PAYLOAD_SPEC_NOT_FOUND'
        when 'config' then 'CONFIG_NOT_FOUND'
        when 'secret' then 'SECRET_NOT_FOUND'
        when 'endpoint' then 'ENDPOINT_NOT_FOUND'
    end;
begin
    perform jobq_private.check_given('name', num_nulls(refuse_definition.name));
    perform jobq_private.check_argument(case
        when _code is null then 'type must be payload_spec, config, secret or endpoint'
    end);
    perform jobq_private.raise_error(
        _code, refuse_definition.type || ' ' || refuse_definition.name
    );
end
$$;

-- Purpose: the retries of an endpoint in the form of its document.
-- Invariant: reads only its argument.
create or replace function jobq_private.retry_document(kind jobq_private.kind)
returns jsonb
language sql
immutable
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

-- Purpose: the reason why clients and deliveries, which use RE2, cannot use a pattern,
-- or null.
-- Invariant: clients, when they store a payload spec, and deliveries detect the
-- remaining patterns that RE2 does not support.
create or replace function jobq_private.shared_pattern_problem(pattern text)
returns text
language plpgsql
immutable
set standard_conforming_strings = on
as $$
declare
    -- Escapes, without text in brackets.
    _bare constant text := regexp_replace(
        shared_pattern_problem.pattern, '\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]', 'x', 'g'
    );
    -- The same without escaped characters.
    _plain constant text := regexp_replace(
        _bare, '\\[pP]\{\^?\w+\}|\\.', 'x', 'g'
    );
begin
    if regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[1-9k]' then
        return 'back references cannot be matched in linear time';
    elsif _plain ~ '\(\?<?[=!]' then
        return 'lookarounds cannot be matched in linear time';
    elsif _plain ~ '\(\?(?!:|P?<\w+>|[imsU-]+[:)])' or _plain ~ '^\*|[*+?}]\+' then
        return 'RE2 does not support this group or repetition';
    elsif regexp_replace(_bare, '\\[\\]', 'x', 'g') ~ '\\[^\W_aAbBCdDEfnpPQrsStvwWxz0]' then
        return 'RE2 does not support this escape';
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

-- Purpose: store a checked payload spec, config or secret, and return it as a document.
-- Invariant: called under the lock of begin_definition(). An unchanged payload spec or config
-- stays as it is. Versions of secrets have only a checksum. Raises:
-- 22004, 22023, JQ007.
create or replace function jobq_private.store_definition(
    type text, name text, document jsonb, ciphertext bytea default null, key_id text default null
)
returns json
language plpgsql
as $$
declare
    _violated text;
begin
    insert into jobq_private.definition as d (type, name, document, ciphertext, key_id, version)
    values (
        store_definition.type, store_definition.name, store_definition.document,
        store_definition.ciphertext, store_definition.key_id,
        jobq_private.record_version(
            store_definition.type, store_definition.name, case store_definition.type
                when 'payload_spec' then jsonb_build_object('schema', document)
                when 'config' then jsonb_build_object('values', document)
                else jsonb_build_object('sha256', encode(sha256(ciphertext), 'hex'))
            end
        )
    )
    on conflict on constraint definition_pkey do update
    set
        document = excluded.document, ciphertext = excluded.ciphertext,
        key_id = excluded.key_id, version = excluded.version, updated_at = now()
    where d.version <> excluded.version or d.type = 'secret';
    return jobq_internal.show_definition(store_definition.type, store_definition.name);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
        return null;
end
$$;

-- Purpose: whether a field of an endpoint's spec may contain input.
-- Invariant: in a URL only after its host, which never comes from input.
create or replace function jobq_private.takes_input(field text, spec jsonb)
returns boolean
language plpgsql
immutable
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

-- Purpose: the references in the templates of an endpoint's spec: field, namespace,
-- path, and whether there is a default.
-- Invariant: an unreadable reference, and unbalanced braces, have no namespace, except
-- }} that closes JSON braces before it. Braces in the name of a member, where they are
-- not allowed, have the namespace name. sign_with names a secret without braces.
create or replace function jobq_private.template_references(spec jsonb)
returns table (
    field text, namespace text, path text, written text, is_optional boolean
)
language plpgsql
immutable
set standard_conforming_strings = on
as $$
begin
    return query
    with texts as materialized (
        select s.key as field, t.text #>> '{}' as text
        from jsonb_each(template_references.spec) as s
        cross join lateral jsonb_path_query(
            s.value, 'strict $.** ? (@.type() == "string")'
        ) as t (text)
    )
    select distinct
        t.field, r.parts[1], ltrim(r.parts[2], '.'), format('{{%s}}', m.found[1]),
        r.parts[3] is not null
    from texts as t
    cross join lateral regexp_matches(t.text, '\{\{(.*?)\}\}', 'g') as m (found)
    left join lateral regexp_match(m.found[1],
        '^\s*(input|config|secret|job)((?:\.[\w-]+)*)'
        || '\s*(?:\?\?\s*("[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\])\s*)?$'
    ) as r (parts) on r.parts[2] <> '' or r.parts[1] = 'input'
    union
    select t.field, null, null, m.found[1], false
    from texts as t
    cross join lateral regexp_replace(t.text, '\{\{.*?\}\}', ' ', 'g') as p (rest)
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
    select 'sign_with', 'secret', t.text, t.text, false
    from texts as t
    where t.field = 'sign_with';
end
$$;

-- Purpose: payload specs, configs, secrets and endpoints as JSON documents.
-- Invariant: contains no value of a secret, encrypted or not. Raises: nothing.
create or replace view jobq_private.definition_document as
select
    d.type, d.name,
    case d.type
        when 'secret' then json_build_object(
            'name', d.name, 'version', d.version,
            'created_at', d.created_at, 'updated_at', d.updated_at
        )
        else json_build_object(
            'name', d.name, case d.type when 'config' then 'values' else 'schema' end, d.document,
            'version', d.version, 'created_at', d.created_at, 'updated_at', d.updated_at
        )
    end as item
from jobq_private.definition as d
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

comment on view jobq_private.definition_document is 'payload specs, configs, secrets and endpoints as JSON documents.';

-- Purpose: Deletes a payload spec, config, secret or endpoint; refused while it is in
-- use.
-- Invariant: its versions stay. Refused while an endpoint refers to it. A secret is also kept while
-- waiting jobs use an older endpoint version that refers to it, an endpoint while it
-- has live jobs or schedules. Deleting an endpoint deletes its kind.
-- Raises: 22004, 22023, JQ007, JQ008.
-- Never: DEFINITION_EXISTS.
-- Argument type: payload_spec, config, secret or endpoint.
-- Example: select jobq.delete_definition('config', 'unused');
create or replace function jobq.delete_definition(type text, name text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _user text;
begin
    perform jobq_private.begin_definition(
        delete_definition.type, delete_definition.name, 'update'
    );
    if delete_definition.type = 'endpoint' then
        perform jobq_private.forget_kind(delete_definition.name);
        return;
    end if;
    select 'endpoint ' || min(r.endpoint) into _user
    from jobq_private.endpoint_definition as r
    where r.type = delete_definition.type and r.name = delete_definition.name and r.is_current;
    if _user is null and delete_definition.type = 'secret' then
        _user := jobq_private.needed_by_jobs('secret', delete_definition.name);
    end if;
    perform jobq_private.check_problem('HAS_DEPENDENTS', _user);
    delete from jobq_private.definition as d
    where d.type = delete_definition.type and d.name = delete_definition.name;
end
$$;

grant execute on function jobq.delete_definition to jobq_operator;

comment on function jobq.delete_definition is 'Deletes a payload spec, config, secret or endpoint; refused while it is in use.';

-- Purpose: Returns statistics of recent deliveries to an endpoint: success rate,
-- latency, failures.
-- Invariant: covers the newest 1,000 attempts that ended in the period, read through
-- two indexes, so the cost is bounded. Released attempts do not count. Raises: 22004,
-- 22023, JQ007.
-- Argument period: how far to look back, 1 s to 30 days.
-- Column since: start of the period; the first of the attempts if there are 1,000.
-- Column attempts: number of attempts that ended.
-- Column succeeded: number of attempts that succeeded.
-- Column failed: number of attempts that failed.
-- Column success_rate: share of succeeded attempts, 0 to 1; null without attempts.
-- Column p50_ms: median of the time from claim to end.
-- Column p95_ms: 95th percentile.
-- Column p99_ms: 99th percentile.
-- Column failures: an object with the number of failures by code.
-- Example: select * from jobq_internal.endpoint_stats('send-welcome');
create or replace function jobq_internal.endpoint_stats(
    endpoint text, period interval default interval '1 hour'
)
returns table (
    since timestamptz, attempts bigint, succeeded bigint, failed bigint,
    success_rate double precision, p50_ms bigint, p95_ms bigint, p99_ms bigint,
    failures jsonb
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _since timestamptz;
begin
    perform jobq_private.check_given('endpoint or period', num_nulls(endpoint, period));
    perform jobq_private.check_argument(case
        when period not between '1 s' and '30 days' then 'period must be from 1 s to 30 days'
    end);
    perform jobq_private.check_endpoints(array[endpoint_stats.endpoint]);
    _since := now() - endpoint_stats.period;
    return query
    with ended as materialized (
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
            select f.finished_at, f.finished_at - f.started_at, coalesce(f.error_code, 'ERROR')
            from jobq_private.attempt as f
            where f.endpoint = endpoint_stats.endpoint
            and f.state in ('retrying', 'dead')
            and f.finished_at >= _since
            order by f.finished_at desc
            limit 1000
        )
        order by finished_at desc
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
                select x.code, count(*) as jobs from ended as x where x.code is not null group by 1
            ) as c
        )
    from ended as e;
end
$$;

grant execute on function jobq_internal.endpoint_stats to jobq_operator, jobq_reader;

comment on function jobq_internal.endpoint_stats is 'Returns statistics of recent deliveries to an endpoint: success rate, latency, failures.';

-- Purpose: Returns everything a worker needs to deliver jobs of an endpoint; secrets
-- are encrypted.
-- Invariant: no row if the kind is not an endpoint.
-- delivery_version is the job's; a version never changes, and null means
-- that of a new job. Returns the present secrets, encrypted, and the present config,
-- or, for a job_id in a later attempt, the config at its first attempt.
-- Raises: 22004.
-- Argument job_id: the job, to find the config of its first attempt.
-- Returns: one row; none if the kind is not an endpoint.
-- Column spec: target and format, with the templates as declared.
-- Column version: the version of the endpoint.
-- Column schema: the JSON Schema of the payload; null without a payload spec.
-- Column config_entries: the values of the config; null without one.
-- Column config_version: the config's version.
-- Column config_valid_from: when the config was declared.
-- Column secrets: an object with key_id and ciphertext (base64) of each secret, by name.
-- Example: select type, spec, version from jobq_internal.get_delivery('send-welcome');
create or replace function jobq_internal.get_delivery(
    kind text, delivery_version integer default null, job_id uuid default null
)
returns table (
    type text, spec text, version integer, schema jsonb, config_entries text,
    config_version integer, config_valid_from timestamptz, secrets jsonb,
    max_concurrency integer, max_per_second double precision
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- The first attempt of this execution. Attempts that do not count, and those before a
    -- redrive, are ignored.
    _started_at constant timestamptz := coalesce((
        select t.started_at
        from (
            select a.job_id, a.started_at, row_number() over (order by a.attempt desc) as n
            from jobq_private.attempt as a
            where a.job_id = get_delivery.job_id and a.state = 'retrying'
        ) as t
        join jobq_private.job as j on j.job_id = t.job_id
        where t.n = j.attempt - j.uncounted - 1
    ), now());
begin
    perform jobq_private.check_given('kind', num_nulls(get_delivery.kind));
    return query
    select
        v.document ->> 'type', v.document ->> 'spec',
        (v.document ->> 'endpoint_version')::integer, s.document -> 'schema',
        c.document ->> 'values', c.version, c.created_at,
        (
            select jsonb_object_agg(x.name, jsonb_build_object(
                'key_id', x.key_id, 'ciphertext', encode(x.ciphertext, 'base64')
            ))
            from jobq_private.template_references(v.document -> 'spec') as r
            join jobq_private.definition as x on x.type = 'secret' and x.name = r.path
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
    left join lateral (
        select f.*
        from jobq_private.definition_version as f
        where f.type = 'config' and f.name = v.document ->> 'config'
        -- the version of that time, else the first one
        order by
            f.created_at <= _started_at desc,
            case when f.created_at <= _started_at then -f.version else f.version end
        limit 1
    ) as c on true
    where e.endpoint = get_delivery.kind;
end
$$;

grant execute on function jobq_internal.get_delivery to jobq_worker, jobq_operator;

comment on function jobq_internal.get_delivery is 'Returns everything a worker needs to deliver jobs of an endpoint; secrets are encrypted.';

-- Purpose: Returns all encrypted secrets, to rotate their key.
-- Invariant: useless without the key. Raises: nothing.
-- Example: select secret, version, key_id from jobq_internal.list_ciphertexts();
create or replace function jobq_internal.list_ciphertexts()
returns table (secret text, version integer, key_id text, ciphertext bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.name, d.version, d.key_id, d.ciphertext
    from jobq_private.definition as d
    where d.type = 'secret'
    order by d.name
$$;

grant execute on function jobq_internal.list_ciphertexts to jobq_operator;

comment on function jobq_internal.list_ciphertexts is 'Returns all encrypted secrets, to rotate their key.';

-- Purpose: Returns the endpoints that a worker cannot deliver because it lacks a driver
-- or a key.
-- Invariant: uses the present versions, not older ones. Raises: 22004.
-- Argument drivers: the types that the worker can deliver: HTTP, KAFKA, REDIS_STREAM.
-- Argument key_ids: the ids of the worker's encryption keys.
-- Returns: one row per endpoint, by name.
-- Column secret: the first secret without a key; null if a driver is missing.
-- Example: select endpoint, type, secret from jobq_internal.list_undeliverable('{HTTP}', '{}');
create or replace function jobq_internal.list_undeliverable(drivers text[], key_ids text[])
returns table (endpoint text, type text, secret text, key_id text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.check_given('drivers or key_ids', num_nulls(drivers, key_ids));
    select distinct on (e.endpoint) e.endpoint, e.type, s.name, s.key_id
    from jobq_private.endpoint as e
    left join (
        jobq_private.endpoint_definition as r
        join jobq_private.definition as s on s.type = r.type and s.name = r.name
    ) on r.endpoint = e.endpoint
        and r.is_current
        and r.type = 'secret'
        and e.type = any(list_undeliverable.drivers)
        and s.key_id <> all(list_undeliverable.key_ids)
    where s.name is not null or e.type <> all(list_undeliverable.drivers)
    order by e.endpoint, s.name
$$;

grant execute on function jobq_internal.list_undeliverable to jobq_worker, jobq_operator;

comment on function jobq_internal.list_undeliverable is 'Returns the endpoints that a worker cannot deliver because it lacks a driver or a key.';

-- Purpose: Returns the versions of a payload spec, config, secret or endpoint, newest
-- first.
-- Invariant: for a secret, only the times of its changes. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Column document: the definition; {} for a secret.
-- Example: select * from jobq_internal.list_versions('config', 'email-service');
create or replace function jobq_internal.list_versions(type text, name text)
returns table (version integer, document jsonb, created_at timestamptz)
language plpgsql
stable
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

grant execute on function jobq_internal.list_versions to jobq_operator, jobq_reader;

comment on function jobq_internal.list_versions is 'Returns the versions of a payload spec, config, secret or endpoint, newest first.';

-- Purpose: Returns a page of payload specs, configs, secrets or endpoints as JSON
-- documents.
-- Invariant: contains no value of a secret. Raises: nothing.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument max_definitions: maximum number.
-- Example: select * from jobq_internal.page_definitions('endpoint');
create or replace function jobq_internal.page_definitions(
    type text, after text default null, max_definitions integer default 50
)
returns table (item json, cursor text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select t.item, case when t.n < count(*) over () then t.name end
    from (
        select d.item, d.name, row_number() over (order by d.name) as n
        from jobq_private.definition_document as d
        where d.type = page_definitions.type
        and (page_definitions.after is null or d.name > page_definitions.after)
        order by d.name
        limit page_definitions.max_definitions + 1
    ) as t
    order by t.n
    limit page_definitions.max_definitions
$$;

grant execute on function jobq_internal.page_definitions to jobq_operator, jobq_reader;

comment on function jobq_internal.page_definitions is 'Returns a page of payload specs, configs, secrets or endpoints as JSON documents.';

-- Purpose: Pauses deliveries to an endpoint. Running ones continue; other jobs wait.
-- Invariant: no claim after the commit delivers to it, except for test_endpoint(). A
-- job that becomes due is postponed once, so it does not slow down claims; its run_at
-- is 30 December 9999 until resume_endpoint().
-- Raises: 22004, 22023, JQ007.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('endpoint', num_nulls(pause_endpoint.endpoint));
    perform jobq_private.check_argument(case
        when length(pause_endpoint.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.check_endpoints(array[pause_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = coalesce(pause_endpoint.reason, e.pause_reason)
    where e.endpoint = pause_endpoint.endpoint;
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;

grant execute on function jobq.pause_endpoint to jobq_operator;

comment on function jobq.pause_endpoint is 'Pauses deliveries to an endpoint. Running ones continue; other jobs wait.';

-- Purpose: Creates or replaces a config: values for the templates of endpoints.
-- Invariant: attempts that start later use it. Refuses to remove a value that an
-- endpoint uses, or an older version with waiting jobs.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: PAYLOAD_SPEC_NOT_FOUND, SECRET_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the config as show_definition() returns it.
-- Example: select jobq.put_config('email-service', '{"api_base_url": "https://api.example.org"}');
create or replace function jobq.put_config(
    config text, entries jsonb, mode text default 'put'
)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('config', put_config.config, put_config.mode);
    perform jobq_private.check_argument(case
        when jsonb_typeof(put_config.entries) is distinct from 'object'
        then 'entries must be an object'
        else 'entries: ' || jobq_private.definition_problem(put_config.entries)
    end);
    perform jobq_private.check_references(e.endpoint, e.spec, put_config.entries)
    from jobq_private.endpoint as e
    where e.config = put_config.config;
    perform jobq_private.check_problem(
        'TEMPLATE_RESOLUTION_FAILED',
        jobq_private.needed_by_jobs('config', put_config.config, put_config.entries)
    );
    return jobq_private.store_definition('config', put_config.config, put_config.entries);
end
$$;

grant execute on function jobq.put_config to jobq_operator;

comment on function jobq.put_config is 'Creates or replaces a config: values for the templates of endpoints.';

-- Purpose: Creates or replaces an endpoint: a kind whose jobs are sent to HTTP, Kafka
-- or a Redis stream.
-- Invariant: the endpoint and its kind have the same name; refuses a kind that
-- put_kind() declared, and references to missing definitions. Existing jobs keep their
-- version.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Argument max_attempts: maximum number of failed deliveries, 1 to 10000.
-- Argument queue: the queue of its jobs; null means the default.
-- Argument max_concurrency: maximum concurrent deliveries over all workers, 1 to 10000; null
-- means 20 per worker.
-- Argument max_per_second: maximum deliveries per second over all workers, 0.001 to 1000000;
-- null means no limit.
-- Argument payload_spec: the payload spec of its jobs; null means any payload.
-- Argument config: the config of its templates; null means none.
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
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _entries jsonb;
    _violated text;
begin
    perform jobq_private.begin_definition('endpoint', put_endpoint.endpoint,
        put_endpoint.mode);
    perform jobq_private.check_given('type or spec', num_nulls(put_endpoint.type, put_endpoint.spec));
    perform jobq_private.check_endpoint_spec(put_endpoint.type, put_endpoint.spec);
    perform jobq_private.check_problem('INVALID_PAYLOAD_SPEC_REF', case
        when not exists (
            select from jobq_private.definition as d
            where d.type = 'payload_spec' and d.name = put_endpoint.payload_spec
        ) then 'payload_spec ' || put_endpoint.payload_spec
    end);
    select d.document into _entries
    from jobq_private.definition as d
    where d.type = 'config' and d.name = put_endpoint.config;
    perform jobq_private.check_problem('INVALID_CONFIG_REF', case
        when not found then 'config ' || put_endpoint.config
    end);
    perform jobq_private.check_references(
        put_endpoint.endpoint, put_endpoint.spec, coalesce(_entries, '{}')
    );

    insert into jobq_private.kind as k (
        kind, queue, max_attempts, timeout, retry_strategy, retry_initial_delay,
        retry_max_delay, retry_jitter
    )
    values (
        put_endpoint.endpoint, put_endpoint.queue, put_endpoint.max_attempts,
        interval '10 s' + interval '1 ms' * coalesce(
            (put_endpoint.spec ->> 'timeout_ms')::numeric, 10000
        ),
        put_endpoint.retry_strategy, put_endpoint.retry_initial_delay,
        put_endpoint.retry_max_delay, put_endpoint.retry_jitter
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        updated_at = now()
    where exists (select from jobq_private.endpoint as e where e.endpoint = k.kind);
    perform jobq_private.check_problem('KIND_EXISTS', case
        when not found then 'kind ' || put_endpoint.endpoint
    end);
    insert into jobq_private.endpoint (
        endpoint, type, payload_spec, config, spec, max_concurrency, max_per_second, version
    )
    values (
        put_endpoint.endpoint, put_endpoint.type, put_endpoint.payload_spec, put_endpoint.config,
        put_endpoint.spec, put_endpoint.max_concurrency, put_endpoint.max_per_second, 0
    )
    on conflict on constraint endpoint_pkey do update
    set
        type = excluded.type, payload_spec = excluded.payload_spec, config = excluded.config,
        spec = excluded.spec, max_concurrency = excluded.max_concurrency,
        max_per_second = excluded.max_per_second;
    perform jobq_private.pin_delivery(put_endpoint.endpoint);
    return jobq_internal.show_definition('endpoint', put_endpoint.endpoint);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
        return null;
end
$$;

grant execute on function jobq.put_endpoint to jobq_operator;

comment on function jobq.put_endpoint is 'Creates or replaces an endpoint: a kind whose jobs are sent to HTTP, Kafka or a Redis stream.';

-- Purpose: Creates or replaces a payload spec: the JSON Schema of the input of
-- endpoints.
-- Invariant: existing jobs keep their version. If the database supports all keywords of
-- a schema, enqueue() refuses input that does not match; delivery always does.
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
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _item json;
begin
    perform jobq_private.begin_definition('payload_spec', put_payload_spec.payload_spec,
        put_payload_spec.mode);
    perform jobq_private.check_problem('SCHEMA_INVALID', case
        when jsonb_typeof(put_payload_spec.schema) is distinct from 'object'
        then 'schema must be an object'
        else coalesce(
            jobq_private.definition_problem(put_payload_spec.schema),
            jobq_private.json_schema_problem(put_payload_spec.schema)
        )
    end);
    _item := jobq_private.store_definition(
        'payload_spec', put_payload_spec.payload_spec, put_payload_spec.schema
    );
    perform jobq_private.pin_delivery(e.endpoint)
    from jobq_private.endpoint as e
    where e.payload_spec = put_payload_spec.payload_spec;
    return _item;
end
$$;

grant execute on function jobq.put_payload_spec to jobq_operator;

comment on function jobq.put_payload_spec is 'Creates or replaces a payload spec: the JSON Schema of the input of endpoints.';

-- Purpose: Creates or replaces an encrypted secret.
-- Invariant: the database never has the value or the key; versions keep no ciphertext.
-- Raises: 22004, 22023, JQ004, JQ007.
-- Never: CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND, ENDPOINT_NOT_FOUND.
-- Returns: the secret as show_definition() returns it, without its value.
-- Example: select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1');
create or replace function jobq.put_secret(
    secret text, ciphertext bytea, key_id text, mode text default 'put'
)
returns json
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('secret', put_secret.secret, put_secret.mode);
    perform jobq_private.check_given(
        'ciphertext or key_id', num_nulls(ciphertext, key_id)
    );
    return jobq_private.store_definition(
        'secret', put_secret.secret, null, put_secret.ciphertext, put_secret.key_id
    );
end
$$;

grant execute on function jobq.put_secret to jobq_operator;

comment on function jobq.put_secret is 'Creates or replaces an encrypted secret.';

-- Purpose: Resumes deliveries to a paused endpoint, and returns the number of postponed
-- jobs.
-- Invariant: postponed jobs get back their run_at, and so their order; a job whose
-- run_at was changed meanwhile keeps the new one. Resuming an endpoint that is not
-- paused changes nothing.
-- Raises: 22004, JQ007.
-- Returns: how many jobs were postponed.
-- Example: select jobq.resume_endpoint('send-welcome');
create or replace function jobq.resume_endpoint(endpoint text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _ids uuid[];
    _parked record;
begin
    perform jobq_private.check_given('endpoint', num_nulls(resume_endpoint.endpoint));
    perform jobq_private.check_endpoints(array[resume_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set paused_at = null, pause_reason = null
    where e.endpoint = resume_endpoint.endpoint and e.paused_at is not null;
    if not found then
        return 0;
    end if;

    _ids := array(
        select j.job_id
        from jobq_private.job as j
        join jobq_private.parked_job as p on p.job_id = j.job_id
        where p.endpoint = resume_endpoint.endpoint
        and j.run_at = jobq_private.parked_until()
        order by j.job_id
        for update of j
    );
    -- one by one in the order of run_at: each is placed behind those that are already
    -- due
    for _parked in
        select p.job_id, p.run_at
        from jobq_private.parked_job as p
        where p.job_id = any (_ids)
        order by p.run_at, p.job_id
    loop
        update jobq_private.job as j
        set run_at = _parked.run_at
        where j.job_id = _parked.job_id;
    end loop;
    delete from jobq_private.parked_job as p
    where p.endpoint = resume_endpoint.endpoint;
    perform jobq_private.announce_jobs(_ids);
    perform jobq_private.record_audit('resume_endpoint', resume_endpoint.endpoint);
    return cardinality(_ids);
end
$$;

grant execute on function jobq.resume_endpoint to jobq_operator;

comment on function jobq.resume_endpoint is 'Resumes deliveries to a paused endpoint, and returns the number of postponed jobs.';

-- Purpose: Replaces the ciphertext of a secret by one with another key, if the version
-- is unchanged.
-- Invariant: replaces only the version that was read, and does not create a version.
-- Raises: 22004, 22023, JQ007.
-- Never: DEFINITION_EXISTS, CONFIG_NOT_FOUND, PAYLOAD_SPEC_NOT_FOUND,
-- ENDPOINT_NOT_FOUND.
-- Argument version: the version that was read, as in list_ciphertexts().
-- Returns: whether it was replaced; false if it has changed.
-- Example: select jobq_internal.rotate_secret('api_key', 1, decode(repeat('01', 44), 'hex'), 'key-2');
create or replace function jobq_internal.rotate_secret(
    secret text, version integer, ciphertext bytea, key_id text
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.begin_definition('secret', rotate_secret.secret, 'update');
    update jobq_private.definition as d
    set ciphertext = rotate_secret.ciphertext, key_id = rotate_secret.key_id
    where d.type = 'secret'
    and d.name = rotate_secret.secret
    and d.version = rotate_secret.version;
    return found;
exception
    when check_violation then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'ciphertext of 28 to 65564 bytes, key_id of 1 to 64 characters');
        return null;
end
$$;

grant execute on function jobq_internal.rotate_secret to jobq_operator;

comment on function jobq_internal.rotate_secret is 'Replaces the ciphertext of a secret by one with another key, if the version is unchanged.';

-- Purpose: Returns a payload spec, config, secret (without its value) or endpoint as a
-- document.
-- Invariant: contains no value of a secret. Raises: 22004, 22023, JQ007.
-- Argument type: payload_spec, config, secret or endpoint.
-- Returns: a JSON object: name, version, created_at and updated_at; of a payload spec
-- schema, of a config values, of an endpoint type, spec, payload_spec, config, queue,
-- max_concurrency, max_per_second, paused_at, pause_reason and retry_policy (max_attempts,
-- backoff, initial_delay_ms, max_delay_ms, jitter).
-- Example: select jobq_internal.show_definition('endpoint', 'send-welcome');
create or replace function jobq_internal.show_definition(type text, name text)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _item json;
begin
    select d.item into _item
    from jobq_private.definition_document as d
    where d.type = show_definition.type and d.name = show_definition.name;
    if not found then
        perform jobq_private.refuse_definition(show_definition.type, show_definition.name);
    end if;
    return _item;
end
$$;

grant execute on function jobq_internal.show_definition to jobq_operator, jobq_reader;

comment on function jobq_internal.show_definition is 'Returns a payload spec, config, secret (without its value) or endpoint as a document.';

-- Purpose: Enqueues one delivery to an endpoint, even if it is paused, and returns the
-- job's id.
-- Invariant: an ordinary job with one attempt and the highest priority; of a paused
-- endpoint only the newest test is delivered.
-- Raises: 22004, 22023, JQ005, JQ006, JQ007, JQ010.
-- Never: DEDUP_CONFLICT, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
-- Returns: the id of the job, whose result is the target's response.
-- Example: select jobq_internal.test_endpoint('send-welcome', '{"user_id": "u1"}');
create or replace function jobq_internal.test_endpoint(endpoint text, payload jsonb default '{}')
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job_id uuid;
begin
    perform jobq_private.check_given('endpoint', num_nulls(test_endpoint.endpoint));
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

grant execute on function jobq_internal.test_endpoint to jobq_operator;

comment on function jobq_internal.test_endpoint is 'Enqueues one delivery to an endpoint, even if it is paused, and returns the job''s id.';

-- Purpose: record changes of definitions in the audit.

create or replace trigger definition_audit
after insert or update on jobq_private.definition
for each row execute function jobq_private.audit_change('put', 'name');

create or replace trigger definition_end_audit
after delete on jobq_private.definition
for each row execute function jobq_private.audit_change('delete', 'name');

create or replace trigger endpoint_audit
after update on jobq_private.endpoint
for each row when (new.version is distinct from old.version)
execute function jobq_private.audit_change('put_endpoint', 'endpoint');

create or replace trigger endpoint_end_audit
after delete on jobq_private.endpoint
for each row execute function jobq_private.audit_change('delete_endpoint', 'endpoint');

commit;
