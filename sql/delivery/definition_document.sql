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
