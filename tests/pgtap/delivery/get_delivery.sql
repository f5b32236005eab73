-- What jobq_internal.get_delivery() promises.
begin;
select plan(11);

select jobq.put_payload_spec('mail-input', '{"type": "object", "required": ["to"]}') as doc \gset
select jobq.put_config('mail', '{"url": "https://a.example", "port": {"n": [25, null]}}') as doc \gset
select jobq.put_secret('mail_key', repeat('c', 40)::bytea, 'k1') as doc \gset

select jobq.put_endpoint('e', 'HTTP',
    '{"url": "{{config.url}}", "headers": {"a": "{{secret.mail_key}}"}}', 'mail-input', 'mail'
) as doc \gset
select is_empty(
    'select * from jobq_internal.get_delivery(''plain'')', 'a kind that is no endpoint has none'
);
select is(
    refusal('select jobq_internal.get_delivery(null)'), '22004 NULL_ARGUMENT', 'a kind is needed'
);
select results_eq(
    $$
    select d.type, d.spec::jsonb ->> 'url', d.version, d.schema, d.config_entries::jsonb ->> 'url',
        d.config_version, decode(d.secrets #>> '{mail_key,ciphertext}', 'base64'),
        d.secrets #>> '{mail_key,key_id}'
    from jobq_internal.get_delivery('e') as d
    $$,
    $$
    values ('HTTP', '{{config.url}}', 1, '{"type": "object", "required": ["to"]}'::jsonb,
        'https://a.example', 1, repeat('c', 40)::bytea, 'k1')
    $$,
    'it has all that a delivery needs'
);

-- The version that a job was made with
select jobq.enqueue('e', '{"to": "a"}') as old_id \gset
update jobq_private.definition_version set created_at = now() - interval '1 hour';
select jobq.put_endpoint('e', 'HTTP', '{"url": "{{config.url}}/v2"}', 'mail-input', 'mail'
) as doc \gset
select jobq.enqueue('e', '{"to": "a"}') as between_id \gset
select jobq.put_config('mail', '{"url": "https://b.example"}') as doc \gset
select jobq.put_payload_spec('mail-input', '{}') as doc \gset
select jobq.enqueue('e') as new_id \gset
select results_eq(
    format($$
    select d.version, d.spec::jsonb ->> 'url', d.schema, d.config_entries::jsonb ->> 'url',
        d.secrets is null
    from unnest('{%s,%s,%s}'::uuid[]) with ordinality as m (job_id, n)
    join jobq.job as j on j.job_id = m.job_id
    cross join lateral jobq_internal.get_delivery('e', j.delivery_version) as d
    order by m.n
    $$, :'old_id', :'between_id', :'new_id'),
    $$
    values
    (1, '{{config.url}}', '{"type": "object", "required": ["to"]}'::jsonb,
        'https://b.example', false),
    (2, '{{config.url}}/v2', '{"type": "object", "required": ["to"]}', 'https://b.example',
        true),
    (2, '{{config.url}}/v2', '{}', 'https://b.example', true)
    $$,
    'endpoint and payload spec are those the job was made with, config and secrets of now'
);
select results_eq(
    $$ select d.version, d.schema from jobq_internal.get_delivery('e') as d $$,
    $$ values (2, '{}'::jsonb) $$,
    'without a version it is what a new job would get'
);
prepare slower as
select jobq.put_endpoint('e', 'HTTP', '{"url": "{{config.url}}/v2"}', 'mail-input', 'mail',
    retry_initial_delay => '7 s');
execute slower \gset was_
select jobq.enqueue('e') as newer_id \gset
select isnt(
    (jobq.get_job(:'newer_id')).delivery_version,
    (jobq.get_job(:'new_id')).delivery_version,
    'other retries are another version'
);
execute slower \gset was_
select is(
    (select k.delivery_version from jobq_private.kind as k where k.kind = 'e'), 4,
    'what is put again is no other version'
);

-- The config of an execution is that of its first attempt
select jobq.enqueue('e', max_attempts => 3) as job_id \gset
select from jobq.claim_job(:'job_id', 'w');
prepare seen as
select d.config_version, d.config_entries::jsonb ->> 'url', d.config_valid_from
from jobq.get_job(:'job_id') as j
cross join lateral jobq_internal.get_delivery('e', j.delivery_version, j.job_id) as d;
select results_eq(
    'seen', $$ values (2, 'https://b.example', now()) $$, 'a first attempt takes the newest'
);
select jobq.release(:'job_id', 1);
update jobq_private.definition_version
set created_at = now() - interval '2 hours' where type = 'config' and version = 1;
update jobq_private.definition_version
set created_at = now() - interval '1 hour' where type = 'config' and version = 2;
select jobq.put_config('mail', '{"url": "https://c.example"}') as doc \gset
select from jobq.claim_job(:'job_id', 'w');
select results_eq(
    'seen', $$ values (3, 'https://c.example', now()) $$,
    'an attempt that was given back began nothing'
);
select jobq.fail(:'job_id', 2, 'x', retry_in => '0');
update jobq_private.attempt set started_at = now() - interval '1 min';
select from jobq.claim_job(:'job_id', 'w');
select results_eq(
    'seen', $$ values (2, 'https://b.example', now() - interval '1 hour') $$,
    'a later attempt takes what the first one did'
);
select jobq.fail(:'job_id', 3, 'x', retryable => false);
select jobq.redrive(:'job_id');
select from jobq.claim_job(:'job_id', 'w');
select results_eq(
    'seen', $$ values (3, 'https://c.example', now()) $$, 'a redrive begins anew'
);

select * from finish();
rollback;
