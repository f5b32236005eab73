-- Purpose: payload specs, configs, secrets and endpoints as JSON documents.
-- Invariant: contains no value of a secret, encrypted or not. Raises: nothing.
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
