-- What put_config(), put_payload_spec(), put_secret() and their deletes promise.
begin;
select plan(53);

select jobq.put_payload_spec('mail-input', '{"type": "object", "required": ["to"]}') as doc \gset
select jobq.put_config('mail', '{"url": "https://a.example", "port": {"n": [25, null]}}') as doc \gset
select jobq.put_secret('mail_key', repeat('c', 40)::bytea, 'k1') as doc \gset

select jobq.put_endpoint('e', 'HTTP',
    '{"url": "{{config.url}}", "headers": {"a": "{{secret.mail_key}}"}}', 'mail-input', 'mail'
) as doc \gset
select is(
    refusal('select ' || case
        when a.call ~ '^(show_definition|list_versions)' then 'jobq_internal.' else 'jobq.'
    end || a.call), a.refusal, format('%s: %s', a.call, a.refusal)
) -- 36 cases
from (
    values
    ('put_config(null, ''{}'')', '22004 NULL_ARGUMENT'),
    ('put_config(''c'', null)', '22023 INVALID_ARGUMENT'),
    ('put_config(''c'', ''[]'')', '22023 INVALID_ARGUMENT'),
    ('put_config(''C'', ''{}'')', '22023 INVALID_ARGUMENT'),
    ('put_config(repeat(''c'', 129), ''{}'')', '22023 INVALID_ARGUMENT'),
    ('put_config(repeat(''c'', 960000), ''{}'')', '22023 INVALID_ARGUMENT'),
    ('put_payload_spec(repeat(''c'', 960000), ''{}'')', '22023 INVALID_ARGUMENT'),
    ('put_config(''c'', ''{}'', ''create'')', 'none'),
    ('put_config(''c'', ''{}'', ''create'')', 'JQ004 DEFINITION_EXISTS'),
    ('put_config(''d'', ''{}'', ''update'')', 'JQ007 CONFIG_NOT_FOUND'),
    ('put_config(''c'', ''{}'', null)', '22023 INVALID_ARGUMENT'),
    ('put_config(''mail'', ''{"host": "u"}'')', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('put_config(''mail'', ''{"url": "https://b.example"}'')', 'none'),
    ('delete_definition(''config'', ''mail'')', 'JQ008 HAS_DEPENDENTS'),
    ('delete_definition(''config'', ''c'')', 'none'),
    ('delete_definition(''config'', ''c'')', 'JQ007 CONFIG_NOT_FOUND'),
    ('delete_definition(''config'', null)', '22004 NULL_ARGUMENT'),
    ('put_payload_spec(null, ''{}'')', '22004 NULL_ARGUMENT'),
    ('put_payload_spec(''p'', ''true'')', 'JQ006 SCHEMA_INVALID'),
    ('put_payload_spec(''p'', null)', 'JQ006 SCHEMA_INVALID'),
    ('put_payload_spec(''p p'', ''{}'')', '22023 INVALID_ARGUMENT'),
    ('put_payload_spec(''p'', ''{}'', ''update'')', 'JQ007 PAYLOAD_SPEC_NOT_FOUND'),
    ('put_payload_spec(''p'', ''{"oneOf": [{}]}'')', 'none'),
    ('delete_definition(''payload_spec'', ''p'')', 'none'),
    ('delete_definition(''payload_spec'', ''p'')', 'JQ007 PAYLOAD_SPEC_NOT_FOUND'),
    ('delete_definition(''payload_spec'', ''mail-input'')', 'JQ008 HAS_DEPENDENTS'),
    ('put_secret(null, repeat(''c'', 40)::bytea, ''k'')', '22004 NULL_ARGUMENT'),
    ('put_secret(''s'', null, ''k'')', '22004 NULL_ARGUMENT'),
    ('put_secret(''s'', ''short'', ''k'')', '22023 INVALID_ARGUMENT'),
    ('put_secret(''s'', repeat(''c'', 40)::bytea, ''k'')', 'none'),
    ('delete_definition(''secret'', ''s'')', 'none'),
    ('delete_definition(''secret'', ''s'')', 'JQ007 SECRET_NOT_FOUND'),
    ('delete_definition(''secret'', ''mail_key'')', 'JQ008 HAS_DEPENDENTS'),
    ('show_definition(''planet'', ''mars'')', '22023 INVALID_ARGUMENT'),
    ('show_definition(''secret'', ''s'')', 'JQ007 SECRET_NOT_FOUND'),
    ('list_versions(''config'', ''nobody'')', 'JQ007 CONFIG_NOT_FOUND')
) as a (call, refusal);

select is(
    (select array_agg(v.version || ' ' || (v.document #>> '{values,url}'))
    from jobq_internal.list_versions('config', 'mail') as v),
    '{"2 https://b.example","1 https://a.example"}', 'every version of a config is kept'
);
select jobq.put_payload_spec('mail-input', '{"type": "object", "oneOf": [{}]}') as doc \gset
select is(
    (select k.payload_schema from jobq_private.kind as k where k.kind = 'e'), null,
    'a schema beyond what the database enforces is left to the delivery'
);
select jobq.put_payload_spec('mail-input', '{"required": ["x"]}') as doc \gset
select is(
    (select k.payload_schema from jobq_private.kind as k where k.kind = 'e'),
    '{"required": ["x"]}'::jsonb, 'a payload spec that changes changes its kinds'
);

-- Secrets
select ok(
    jobq_internal.show_definition('secret', 'mail_key')::text !~ '(ciphertext|key_id|cccc|6363)'
    and (select string_agg(p.item::text, ' ') from jobq_internal.page_definitions('secret') as p)
        !~ '(ciphertext|cccc|6363)'
    and (select string_agg(v.document::text, ' ') from jobq_internal.list_versions('secret', 'mail_key') as v)
        = '{}',
    'what is stored of a secret is never shown'
);
select is(
    jobq_internal.rotate_secret('mail_key', 1, repeat('d', 40)::bytea, 'k2'), true,
    'a secret can be encrypted anew'
);
select results_eq(
    'select version, key_id, ciphertext from jobq_internal.list_ciphertexts()',
    $$ values (1, 'k2', repeat('d', 40)::bytea) $$,
    'and is the same version'
);
select is(
    jobq_internal.rotate_secret('mail_key', 2, repeat('e', 40)::bytea, 'k3'), false,
    'but not if it has changed meanwhile'
);
select results_eq(
    'select p.item ->> ''name'', p.cursor from jobq_internal.page_definitions(''config'', null, 1) as p',
    $$ values ('mail', null::text) $$,
    'a page that is the last has no cursor'
);

-- What jobs of an older version are delivered by
select jobq.put_config('old', '{"k": "v", "z": 1}') as doc \gset
select jobq.put_secret('old_key', repeat('c', 40)::bytea, 'k1') as doc \gset
select jobq.put_payload_spec('old-input', '{"type": "object"}') as doc \gset
select jobq.put_endpoint('aged', 'HTTP', '{"url": "http://a.example/{{config.k}}{{config.y ?? 1}}",
    "headers": {"a": "{{secret.old_key}}"}}', 'old-input', 'old') as doc \gset
select jobq.enqueue('aged') as job_id \gset
select k.delivery_version from jobq_private.kind as k where k.kind = 'aged' \gset
select jobq.put_endpoint('aged', 'HTTP', '{"url": "http://a.example/"}') as doc \gset
select is(
    refusal('select jobq.' || a.call), a.refusal, format('while jobs wait, %s: %s', a.call, a.refusal)
)
from (
    values
    ('put_config(''old'', ''{"z": 1}'')', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('put_config(''old'', ''{"k": 2}'')', 'none'),
    ('delete_definition(''secret'', ''old_key'')', 'JQ008 HAS_DEPENDENTS'),
    ('delete_definition(''payload_spec'', ''old-input'')', 'none'),
    ('delete_definition(''config'', ''old'')', 'none')
) as a (call, refusal);
select results_eq(
    format(
        'select config_entries::jsonb, schema, secrets ? ''old_key'' from jobq_internal.get_delivery(''aged'', %s, %L)',
        :delivery_version, :'job_id'
    ),
    $$ values ('{"k": 2}'::jsonb, '{"type": "object"}'::jsonb, true) $$,
    'a delivery has the versions of what is gone'
);
select jobq.cancel(:'job_id');
select is(
    refusal('select jobq.' || a.call), a.refusal, format('then, %s: %s', a.call, a.refusal)
)
from (
    values
    ('put_config(''old'', ''{"z": 1}'')', 'none'),
    ('delete_definition(''secret'', ''old_key'')', 'none')
) as a (call, refusal);

select jobq.put_endpoint('noted', 'HTTP', '{"url": "http://a.example/{{config.v}}"}', 'noted', 'noted')
from jobq.put_payload_spec('noted', '{}') as s, jobq.put_config('noted', '{"v": 1}') as c \gset doc_
select jobq.put_endpoint('noted', 'HTTP', '{"url": "http://b.example/{{config.v}}"}', 'noted', 'noted') as doc \gset
select jobq.put_endpoint('noted', 'HTTP', '{"url": "http://b.example/{{config.v}}"}', 'noted', 'noted') as doc \gset
select jobq.put_config('noted', '{"v": 2}') as doc \gset
select jobq.delete_definition(t.type, 'noted') from unnest('{endpoint,config,payload_spec}'::text[]) as t (type);
select results_eq(
    $$
        select a.action collate "default", a.reason collate "default", a.actor collate "default" from jobq.audit as a
        where a.subject = 'noted' order by a.audit_id
    $$,
    $$
        select v.action, v.reason, session_user::text collate "default"
        from (
            values
            ('put_payload_spec', 'version 1'), ('put_config', 'version 1'), ('put_endpoint', 'version 1'),
            ('put_endpoint', 'version 2'), ('put_config', 'version 2'),
            ('delete_endpoint', null), ('delete_config', null), ('delete_payload_spec', null)
        ) as v (action, reason)
    $$,
    'the audit knows who put and deleted which version of what'
);

select * from finish();
rollback;
