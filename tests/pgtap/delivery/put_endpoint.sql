-- What jobq.put_endpoint() and jobq.delete_definition() promise.
begin;
select plan(137);

select jobq.put_payload_spec('mail-input', '{"type": "object", "required": ["to"]}') as doc \gset
select jobq.put_config('mail', '{"url": "https://a.example", "port": {"n": [25, null]}}') as doc \gset
select jobq.put_secret('mail_key', repeat('c', 40)::bytea, 'k1') as doc \gset

select jobq.put_endpoint('send-mail', 'HTTP', '{
    "url": "{{config.url}}/mail", "method": "PUT",
    "headers": {"authorization": "Bearer {{ secret.mail_key }}", "x-to": "{{input.to}}"},
    "body_template": {"to": "{{input.to}}", "port": "{{config.port.n.0}}"},
    "timeout_ms": 2500, "expected_status_codes": [200], "sign_with": "mail_key"
}', 'mail-input', 'mail', max_attempts => 3) as doc \gset
select results_eq(
    $$
    select k.max_attempts, k.retry_strategy, k.retry_initial_delay, k.retry_max_delay,
        k.retry_jitter, k.timeout, k.payload_schema
    from jobq_private.kind as k where k.kind = 'send-mail'
    $$,
    $$
    values (3, 'exponential', interval '1 s', interval '60 s', 0.25::double precision,
        interval '12.5 s', '{"type": "object", "required": ["to"]}'::jsonb)
    $$,
    'an endpoint is a kind, with the retries of its policy and the schema of its spec'
);
select is(
    :'doc'::jsonb -> 'retry_policy',
    '{"max_attempts": 3, "backoff": "exponential", "initial_delay_ms": 1000,
    "max_delay_ms": 60000, "jitter": 0.25}'::jsonb,
    'its document shows the policy'
);
select is(
    refusal('select jobq.enqueue(''send-mail'', ''{}'')'), 'JQ006 PAYLOAD_INVALID',
    'plain SQL cannot enqueue input that does not fit'
);
select is(
    refusal(format('select jobq.put_endpoint(%L, %L, %L, %s)', a.name, a.type, a.spec,
        a.rest)), a.refusal,
    format('put_endpoint(%s, %s, %s, %s): %s', a.name, a.type, a.spec, a.rest, a.refusal)
) -- 81 cases
from (
    values
    (null, 'HTTP', '{"url": "http://u"}', 'null', '22004 NULL_ARGUMENT'),
    ('e', null, '{"url": "http://u"}', 'null', '22004 NULL_ARGUMENT'),
    ('e', 'HTTP', null, 'null', '22004 NULL_ARGUMENT'),
    ('E', 'HTTP', '{"url": "http://u"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e_e', 'HTTP', '{"url": "http://u"}', 'null', '22023 INVALID_ARGUMENT'),
    ('-e', 'HTTP', '{"url": "http://u"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'SMTP', '{"url": "http://u"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '[]', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": ""}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": ["http://u"]}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "verb": "GET"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "method": "get"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": 1}}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "timeout_ms": 0}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "timeout_ms": 1.5}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "timeout_ms": [5]}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "timeout_ms": 3600001}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "expected_status_codes": []}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "expected_status_codes": [199]}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "expected_status_codes": [200, 304, 599]}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://u", "expected_status_codes": [200, "x"]}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": ["any"]}', 'null', 'none'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "t"}', 'null', 'none'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "t", "acks": "2"}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "t", "acks": "1"}', 'null', 'none'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r", "stream": "s"}', 'null', 'none'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r", "stream": "s", "fields_template": {}}',
        'null', '22023 INVALID_ARGUMENT'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r?db=1&username=u", "stream": "s"}', 'null',
        'none'),
    ('e', 'REDIS_STREAM', '{"redis_url": "http://r", "stream": "s"}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "a b"}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "t", "options": {"debug": "all"}}',
        'null', '22023 INVALID_ARGUMENT'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "t", "options": {"linger.ms": "1"}}',
        'null', 'none'),
    ('e', 'HTTP', '{"url": "not a url"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "ftp://u/"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://192.0.2.255/"}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"X": "a", "x": "b"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r?client_name=ab&db=2", "stream": "s"}', 'null',
        'none'),
    ('e', 'HTTP', '{"url": "http://u:p@a.example/"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "HTTPS://a.example:8443/{{input.id}}?q={{job.id}}"}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://[::1]:80"}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://u:80{{config.url}}"}', 'config => ''mail''', 'none'),
    ('e', 'HTTP', '{"url": "http://u{{input.id}}/"}', 'null', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{config.url}}{{input.id}}"}', 'config => ''mail''',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{config.url}}/{{input.id}}"}', 'config => ''mail''', 'none'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a b": "c"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": "c\r\nd: e"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": "c\nd"}}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": "c\n"}}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": "\u00fc"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"Transfer-Encoding": "chunked"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"content-length": "1"}}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "timeout_ms": 5000.0}', 'null', 'none'),
    ('e', 'HTTP', format('{"url": "http://u", "body_template": %s}', repeat('9', 5000)), 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": {"a": "{{config.x ?? 1}}"}}', 'null',
        'none'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{input.a ?? oops}}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{job.secret}}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{secret.mail_key ?? null}}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r", "stream": "s", "fields_template": {},
        "max_len": "many"}', 'null', '22023 INVALID_ARGUMENT'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r", "stream": "s", "max_len": 0}', 'null',
        '22023 INVALID_ARGUMENT'),
    ('e', 'REDIS_STREAM', '{"redis_url": "redis://r", "stream": "s", "fields_template": {"a": "b"},
        "max_len": "{{config.port.n.0}}"}', 'config => ''mail''', 'none'),
    ('e', 'HTTP', '{"url": "http://u"}', '''nobody''', 'JQ007 INVALID_PAYLOAD_SPEC_REF'),
    ('e', 'HTTP', '{"url": "http://u"}', 'config => ''nobody''', 'JQ007 INVALID_CONFIG_REF'),
    ('e', 'HTTP', '{"url": "{{config.url}}"}', 'null', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{config.host}}"}', 'config => ''mail''',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{config.port.n.2}}"}', 'config => ''mail''',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{config.port.n.1}}"}', 'config => ''mail''', 'none'),
    ('e', 'HTTP', '{"url": "{{secret.nope}}"}', 'null', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "{{input.host}}"}', 'null', 'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": {"a": [{"b": "{{env.HOME}}"}]}}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{input}}"}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{input.a b}}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{ and }"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": {"a": "{ {{inputs} }"}}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": {"{{a}}": 1}}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "Dear input.name}},"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{\"a\": {\"b\": {{input.b}}}}"}', 'null',
        'none'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{ a } b } {{input.b}}"}', 'null', 'none'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": "{{input.n}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": ["{{input.b}}: {{ input.a"]}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "headers": {"a": "{{secret.mail_key}"}}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "body_template": [{"a{{ input.a }}": 1}]}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u", "sign_with": "nope"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'KAFKA', '{"bootstrap_servers": "b", "topic": "{{secret.mail_key}}"}', 'null',
        'JQ007 TEMPLATE_RESOLUTION_FAILED'),
    ('e', 'HTTP', '{"url": "http://u"}', 'max_concurrency => 0', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u"}', 'max_per_second => 0', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u"}', 'max_attempts => 0', '22023 INVALID_ARGUMENT'),
    ('e', 'HTTP', '{"url": "http://u"}', 'mode => ''drop''', '22023 INVALID_ARGUMENT')
) as a (name, type, spec, rest, refusal);

-- Creating and updating
select is(
    refusal(format('select jobq.put_endpoint(%L, ''HTTP'', ''{"url": "http://u"}'', mode => %L)',
        a.name, a.mode)), a.refusal, format('%s %s: %s', a.mode, a.name, a.refusal)
) -- 3 cases
from (
    values ('send-mail', 'create', 'JQ004 DEFINITION_EXISTS'),
    ('nobody', 'update', 'JQ007 ENDPOINT_NOT_FOUND'), ('fresh', 'create', 'none')
) as a (name, mode, refusal);
select is(
    (jobq.put_endpoint('fresh', 'HTTP', '{"url": "http://u"}') ->> 'version')::integer, 1,
    'the same again is the same version'
);
select is(
    (jobq.put_endpoint('fresh', 'HTTP', '{"url": "http://v"}') ->> 'version')::integer, 2,
    'another is the next'
);
select is(
    (jobq.put_endpoint('fresh', 'HTTP', '{"url": "http://v"}', max_attempts => 5) ->> 'version')::integer, 3,
    'other retries are another version'
);
select is(
    (jobq.put_endpoint('fresh', 'HTTP', '{"url": "http://w"}', max_attempts => 6, queue => 'mail') ->> 'version')::integer, 4,
    'all that changes at a time is one version, the queue too'
);
select is(
    refusal(a.statement), a.refusal, a.statement
)
from (
    values
    ('select jobq.put_kind(''fresh'')', 'JQ004 IS_ENDPOINT'),
    ('select jobq.put_kind(''fresh'', max_attempts => 7, version => 8)', 'JQ004 IS_ENDPOINT'),
    ('select jobq.put_endpoint(''handled'', ''HTTP'', ''{"url": "http://u"}'')', 'JQ004 KIND_EXISTS'),
    ('select jobq.put_endpoint(''handled'', ''HTTP'', ''{"url": "http://u"}'', mode => ''create'')',
        'JQ004 KIND_EXISTS')
) as a (statement, refusal), jobq.put_kind('handled', 'mail', max_attempts => 2);
select results_eq(
    $$
    select k.kind, k.queue, k.max_attempts, e.version
    from jobq_private.kind as k
    left join jobq_private.endpoint as e on e.endpoint = k.kind
    where k.kind in ('fresh', 'handled')
    order by k.kind
    $$,
    $$ values ('fresh', 'mail', 6, 4), ('handled', 'mail', 2, null::integer) $$,
    'neither a kind nor an endpoint takes the place of the other'
);
select is(
    (
        select v.document - '{type,spec,config,payload_spec,max_concurrency,max_per_second}'::text[]
        from jobq_internal.list_versions('endpoint', 'fresh') as v
        where v.version = 4
    ),
    '{"queue": "mail", "retry_policy": {"max_attempts": 6, "backoff": "exponential", "jitter": 0.25,
        "initial_delay_ms": 1000, "max_delay_ms": 60000}}'::jsonb,
    'a version says how it was tried again, and in which queue'
);

-- Deleting
select jobq.enqueue('send-mail', '{"to": "a"}') as job_id \gset
select is(
    refusal('select jobq.delete_definition(''endpoint'', ''send-mail'')'), 'JQ008 HAS_DEPENDENTS',
    'an endpoint with live jobs stays'
);
select jobq.cancel(:'job_id');
select is(
    refusal('select jobq.delete_definition(''endpoint'', ''send-mail'')'), 'none',
    'finished jobs do not hold it'
);
select is_empty(
    $$ select from jobq_private.kind as k where k.kind = 'send-mail' $$,
    'its kind goes with it'
);
select is(
    refusal(format('select jobq.delete_definition(''endpoint'', %L)', a.name)), a.refusal,
    format('delete_definition(%L): %s', a.name, a.refusal)
) -- 2 cases
from (
    values ('send-mail', 'JQ007 ENDPOINT_NOT_FOUND'), (null, '22004 NULL_ARGUMENT')
) as a (name, refusal);
select is(
    (jobq.put_endpoint('fresh', 'HTTP', '{"url": "http://u"}') ->> 'version')::integer, 5,
    'versions are not used twice'
);

-- Addresses and settings, of which only the form is checked here
select is(
    refusal(format('select jobq.put_endpoint(''e'', %L, %L)', a.type, a.spec)),
    case when a.is_good then 'none' else '22023 INVALID_ARGUMENT' end,
    format('%s is %s', left(a.spec::text, 80), case when a.is_good then 'good' else 'refused' end)
) -- 26 cases
from (
    select 'HTTP', jsonb_build_object('url', u.url), u.is_good
    from (
        values
        ('http://a.example:65535/', true), ('http://a.example:080', true),
        ('http://a_b.example./x y', true), ('http://a-b.É.example./', true),
        ('http://日本.{{secret.mail_key}}:80/☃', true), ('http://א1.xn--e1a/', true),
        (format('http://a.example/%s', repeat('é', 8175)), true),
        (format('http://a.example/%s', repeat('a', 8176)), false)
    ) as u (url, is_good)
    union all
    select 'REDIS_STREAM', jsonb_build_object('redis_url', u.url, 'stream', 's'), u.is_good
    from (
        values
        ('redis://h:6379/1?db=2&username=u', true), ('rediss://u:p@h:1', true),
        ('redis://[::1]:6379', true), ('unix:///run/redis.sock?db=1', true), ('redis://', true),
        ('unix://', false)
    ) as u (url, is_good)
    union all
    select 'KAFKA', jsonb_build_object('bootstrap_servers', u.servers, 'topic', u.topic), u.is_good
    from (
        values
        ('a:9092, b.example', 't', true), ('SSL://[::1]:9092', 't', true),
        ('a', '..', false), ('a', '.', false)
    ) as u (servers, topic, is_good)
    union all
    select
        'KAFKA', jsonb_build_object('bootstrap_servers', 'a', 'topic', 't',
            'options', jsonb_build_object(o.option, o.value)), true
    from (
        values
        ('compression.type', 'zstd'), ('security.protocol', 'SSL'),
        ('ssl.ca.pem', e'-----BEGIN CERTIFICATE-----\nMII'),
        ('ssl.key.pem', e'-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII'),
        ('ssl.certificate.pem', '{{secret.mail_key}}'),
        ('sasl.mechanism', 'SCRAM-SHA-512'), ('linger.ms', '0.5'),
        ('sasl.password', '{{secret.mail_key}}')
    ) as o (option, value)
) as a (type, spec, is_good);

select * from finish();
rollback;
