-- Deploy jobq:http_tables to pg
-- Keys of the HTTP API. The key itself is never here, only its SHA-256.
begin;
set local role jobq_owner;

create table jobq_private.api_key (
    api_key text not null,
    prefix text not null,
    key_hash bytea not null,
    scopes text[] not null,
    requests_per_second integer,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    login text not null default session_user,
    constraint api_key_pkey primary key (api_key),
    constraint api_key_key_hash_key unique (key_hash),
    constraint "name must have 1 to 128 characters"
    check (length(api_key) between 1 and 128),
    constraint "prefix must have 1 to 16 characters"
    check (length(prefix) between 1 and 16),
    constraint "key_hash must have 32 bytes" check (octet_length(key_hash) = 32),
    constraint "scopes: at least one of produce, work, operate and read"
    check (scopes <@ '{produce,work,operate,read}' and cardinality(scopes) > 0),
    constraint "requests_per_second must be at least 1" check (requests_per_second >= 1)
)
with (fillfactor = 50);

comment on table jobq_private.api_key is 'Keys of the HTTP API by name, as SHA-256, with what they may do.';

commit;
