-- What keys of the HTTP API promise: create_api_key, authenticate, revoke, list.
begin;
select plan(17);

select jobq_http.create_api_key('ci', sha256('one'), 'jobq_one', '{produce,read}');
select jobq_http.create_api_key(
    'old', sha256('two'), 'jobq_two', '{work}', now() - interval '1 s'
);
select jobq_http.create_api_key(
    'own', sha256('three'), 'jobq_three', '{operate}', now() + interval '1 h', 7
);

select results_eq(
    'select name, scopes, requests_per_second from jobq_http.authenticate(sha256(''one''))',
    $$ values ('ci', '{produce,read}'::text[], null::integer) $$,
    'a key is known by its SHA-256'
);
select results_eq(
    'select name, requests_per_second from jobq_http.authenticate(sha256(''three''))',
    $$ values ('own', 7) $$,
    'a key can have a limit of its own'
);
select is_empty('select jobq_http.authenticate(sha256(''none''))', 'another is nobody''s');
select is_empty('select jobq_http.authenticate(null)', 'and so is none');
select is_empty('select jobq_http.authenticate(sha256(''two''))', 'an expired one says nothing');

update jobq_private.api_key set last_used_at = now() - interval '40 s';
select from jobq_http.authenticate(sha256('one'));
select is(
    (select last_used_at from jobq_http.list_api_keys() where name = 'ci'),
    now() - interval '40 s',
    'the last use is not written again within a minute'
);
update jobq_private.api_key set last_used_at = now() - interval '61 s';
select from jobq_http.authenticate(sha256('one'));
select cmp_ok(
    (select last_used_at from jobq_http.list_api_keys() where name = 'ci'), '>', now(),
    'but after it'
);

select jobq_http.revoke_api_key('ci');
select is_empty('select jobq_http.authenticate(sha256(''one''))', 'a revoked key says nothing');
update jobq_private.api_key set revoked_at = now() - interval '1 h' where api_key = 'ci';
select jobq_http.revoke_api_key('ci');
select is(
    (select revoked_at from jobq_http.list_api_keys() where name = 'ci'),
    now() - interval '1 h',
    'revoking it again changes nothing'
);
select is(
    refusal('select jobq_http.revoke_api_key(''nobody'')'),
    'JQ007 API_KEY_NOT_FOUND', 'a name that nobody has cannot be revoked'
);
select is(
    refusal('select jobq_http.revoke_api_key(null)'),
    '22004 NULL_ARGUMENT', 'nor can none'
);
select is(
    refusal(
        'select jobq_http.create_api_key(''ci'', sha256(''four''), ''jobq_'', ''{read}'')'
    ),
    'JQ004 API_KEY_EXISTS', 'the name of a revoked key is not used again'
);
select is(
    refusal('select jobq_http.create_api_key(''x'', ''short'', ''jobq_'', ''{read}'')'),
    '22023 INVALID_ARGUMENT', 'a hash has 32 bytes'
);
select is(
    refusal(
        'select jobq_http.create_api_key(''x'', sha256(''x''), ''jobq_'', ''{root}'')'
    ),
    '22023 INVALID_ARGUMENT', 'there are four scopes'
);
select is(
    refusal('select jobq_http.create_api_key(''x'', sha256(''x''), ''jobq_'', ''{}'')'),
    '22023 INVALID_ARGUMENT', 'and a key has at least one'
);
select is(
    refusal('select jobq_http.create_api_key(null, sha256(''x''), ''jobq_'', ''{read}'')'),
    '22004 NULL_ARGUMENT', 'and a name'
);
select results_eq(
    'select name, prefix from jobq_http.list_api_keys() order by name',
    $$ values ('ci', 'jobq_one'), ('old', 'jobq_two'), ('own', 'jobq_three') $$,
    'the list has all of them, by name and first letters'
);

select * from finish();
rollback;
