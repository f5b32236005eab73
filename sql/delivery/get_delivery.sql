-- Purpose: all that a worker needs to deliver jobs of an endpoint, or no row when the kind
-- is no endpoint.
-- Invariant: endpoint and payload spec as they were when the job was made, secrets as they
-- are now and encrypted; the config as it is now, or, for a job_id in a later attempt, as
-- it was when the first began. valid_until is null for the version that new jobs get.
-- Raises: 22004.
create or replace function jobq.get_delivery(
    kind text, created_at timestamptz default null, job_id uuid default null
)
returns table (
    type text, spec jsonb, version integer, valid_from timestamptz,
    valid_until timestamptz, schema jsonb, config_entries jsonb, config_version integer,
    config_valid_from timestamptz, secrets jsonb, max_concurrency integer,
    max_per_second double precision
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _moment timestamptz := coalesce(get_delivery.created_at, now());
    _started_at timestamptz := coalesce(
        jobq_private.execution_started_at(get_delivery.job_id), now()
    );
begin
    if get_delivery.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    end if;
    return query
    select
        v.document ->> 'type', v.document -> 'spec', v.version, v.created_at,
        (
            select n.created_at from jobq_private.definition_version as n
            where n.type = 'endpoint' and n.name = e.endpoint and n.version = v.version + 1
        ),
        s.document -> 'schema', c.document -> 'values', c.version, c.created_at,
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
    cross join lateral jobq_private.version_at('endpoint', e.endpoint, _moment) as v
    left join lateral jobq_private.version_at(
        'payload_spec', v.document ->> 'payload_spec', _moment
    ) as s on true
    left join lateral jobq_private.version_at(
        'config', v.document ->> 'config', _started_at
    ) as c on true
    where e.endpoint = get_delivery.kind;
end
$$;

revoke all on function jobq.get_delivery from public;
grant execute on function jobq.get_delivery to jobq_worker;

comment on function jobq.get_delivery is
'Returns all that a worker needs to deliver jobs of an endpoint, its secrets encrypted.';
