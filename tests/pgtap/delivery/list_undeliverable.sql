-- What jobq_internal.list_undeliverable() promises.
begin;
select plan(8);

select count(jobq.put_secret(s.secret, repeat('c', 40)::bytea, s.key_id)) as n
from (values ('a', 'k1'), ('b', 'k2'), ('unused', 'k3')) as s (secret, key_id) \gset
select count(jobq.put_endpoint(e.name, e.type, e.spec::jsonb)) as n
from (values
    ('plain', 'HTTP', '{"url": "http://a.example"}'),
    ('secretive', 'HTTP', '{"url": "http://a.example", "headers": {"a": "{{secret.a}}{{secret.b}}"}}'),
    ('topical', 'KAFKA', '{"bootstrap_servers": "a.example:9092", "topic": "t", "options": {"sasl.username": "u", "sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT", "sasl.password": "{{secret.b}}"}}'),
    ('stream', 'REDIS_STREAM', '{"redis_url": "redis://a.example", "stream": "s"}')
) as e (name, type, spec) \gset

select jobq.put_config('c', '{"base": "http://a.example"}') as config,
    jobq.put_payload_spec('p', '{"type": "object"}') as payload_spec,
    jobq.put_endpoint('configured', 'HTTP', '{"url": "{{config.base}}/"}', config => 'c', payload_spec => 'p') as doc \gset

prepare listed (text[], text[]) as
select u.endpoint collate "default", u.type, u.secret collate "default", u.key_id
from jobq_internal.list_undeliverable($1, $2) as u;
select is_empty(
    $$ execute listed('{HTTP,KAFKA,REDIS_STREAM}', '{k1,k2}') $$,
    'a worker with every driver and key can deliver all'
);
select results_eq(
    $$ execute listed('{HTTP,KAFKA}', '{k1,k2}') $$,
    $$ values ('stream', 'REDIS_STREAM', null::text, null::text) $$, 'without a driver not its type'
);
select results_eq(
    $$ execute listed('{HTTP,KAFKA,REDIS_STREAM}', '{k1}') $$,
    $$ values ('secretive', 'HTTP', 'b', 'k2'), ('topical', 'KAFKA', 'b', 'k2') $$,
    'without a key not what needs it'
);
select is_empty(
    $$ select 1 from jobq_internal.list_undeliverable('{HTTP}', '{}') where endpoint = 'configured' $$,
    'an endpoint with a config and a payload spec needs no key'
);
select results_eq(
    $$ execute listed('{HTTP}', '{}') $$,
    $$ values ('secretive', 'HTTP', 'a', 'k1'), ('stream', 'REDIS_STREAM', null, null),
        ('topical', 'KAFKA', null, null) $$,
    'each stands there once'
);
select jobq.put_endpoint('stream', 'HTTP', '{"url": "http://a.example"}') as doc \gset
select is_empty(
    $$ execute listed('{HTTP,KAFKA}', '{k1,k2}') $$, 'what an endpoint is now decides'
);
select throws_ok($$ execute listed(null, '{}') $$, '22004', null, 'drivers are needed');
select throws_ok($$ execute listed('{}', null) $$, '22004', null, 'and so are keys');

select * from finish();
rollback;
