-- Purpose: Returns everything a worker needs to deliver jobs of an endpoint; secrets
-- are encrypted.
-- Invariant: no row if the kind is not an endpoint. delivery_version is the job's; a version
-- never changes, and null means that of a new job. Returns the present secrets, encrypted, and
-- the present config, or, for a job_id in a later attempt, the config at its first attempt.
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
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
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
