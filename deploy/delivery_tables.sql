-- Deploy jobq:delivery_tables to pg
-- Payload specs, configs, secrets, endpoints, and their versions. Clients encrypt secrets.
begin;
set local role jobq_owner;

create table jobq_private.payload_spec (
    payload_spec text not null,
    schema jsonb not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint payload_spec_pkey primary key (payload_spec),
    constraint payload_spec_payload_spec_check
    check (payload_spec ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint payload_spec_schema_check check (jsonb_typeof(schema) = 'object')
);

comment on table jobq_private.payload_spec is 'JSON Schemas of the input of endpoints.';

create table jobq_private.config (
    config text not null,
    entries jsonb not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint config_pkey primary key (config),
    constraint config_config_check check (config ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint config_entries_check check (jsonb_typeof(entries) = 'object')
);

comment on table jobq_private.config is 'Values that the templates of endpoints refer to.';

create table jobq_private.secret (
    secret text not null,
    ciphertext bytea not null,
    key_id text not null,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint secret_pkey primary key (secret),
    constraint secret_secret_check check (secret ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint secret_ciphertext_check check (octet_length(ciphertext) between 28 and 65564),
    constraint secret_key_id_check check (length(key_id) between 1 and 64)
);

comment on table jobq_private.secret is 'Secrets of endpoints, encrypted under a key that the database never has.';

create table jobq_private.endpoint (
    endpoint text not null,
    type text not null,
    payload_spec text,
    config text,
    spec jsonb not null,
    max_concurrency integer,
    max_per_second double precision,
    paused_at timestamptz,
    pause_reason text,
    test_job_id uuid,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint endpoint_pkey primary key (endpoint),
    constraint "endpoint must match [a-z0-9][a-z0-9-]{0,127}"
    check (endpoint ~ '^[a-z0-9][a-z0-9-]{0,127}$'),
    constraint "type must be HTTP, KAFKA or REDIS_STREAM"
    check (type in ('HTTP', 'KAFKA', 'REDIS_STREAM')),
    constraint "spec must be a JSON object" check (jsonb_typeof(spec) = 'object'),
    constraint "max_concurrency must be from 1 to 10000"
    check (max_concurrency between 1 and 10000),
    constraint "max_per_second must be from 0.001 to 1000000"
    check (max_per_second between 0.001 and 1000000),
    constraint endpoint_endpoint_fkey foreign key (endpoint)
    references jobq_private.kind (kind) on delete cascade,
    constraint endpoint_payload_spec_fkey foreign key (payload_spec)
    references jobq_private.payload_spec (payload_spec),
    constraint endpoint_config_fkey foreign key (config)
    references jobq_private.config (config)
);

comment on table jobq_private.endpoint is 'Kinds whose jobs are delivered: their target and format.';

-- Jobs of paused endpoints that a claim has postponed until parked_until(), with the run_at
-- that resume_endpoint() restores.
create table jobq_private.parked_job (
    job_id uuid not null,
    endpoint text not null,
    run_at timestamptz not null,
    constraint parked_job_pkey primary key (job_id),
    constraint parked_job_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

create index parked_job_endpoint_idx on jobq_private.parked_job (endpoint);

comment on table jobq_private.parked_job is 'The run_at of jobs that wait until their endpoint is resumed.';

create table jobq_private.endpoint_secret (
    endpoint text not null,
    secret text not null,
    constraint endpoint_secret_pkey primary key (endpoint, secret),
    constraint endpoint_secret_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade,
    constraint endpoint_secret_secret_fkey foreign key (secret)
    references jobq_private.secret (secret)
);

comment on table jobq_private.endpoint_secret is 'The secrets that an endpoint refers to.';

-- Includes older versions, because jobs may still be delivered by them.
create table jobq_private.pinned_definition (
    endpoint text not null,
    type text not null,
    name text not null,
    constraint pinned_definition_pkey primary key (endpoint, type, name),
    constraint pinned_definition_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

comment on table jobq_private.pinned_definition is 'The payload specs and configs that any version of an endpoint refers to.';

create table jobq_private.definition_version (
    type text not null,
    name text not null,
    version integer not null,
    document jsonb not null,
    created_at timestamptz not null default now(),
    constraint definition_version_pkey primary key (type, name, version)
);

comment on table jobq_private.definition_version is 'Every version of every payload spec, config and endpoint, and when each secret changed.';

-- The fields of the specs of endpoints. Strict paths, so that an array is not taken for its
-- elements.
create table jobq_private.spec_field (
    type text not null,
    field text not null,
    is_needed boolean not null,
    meaning text not null,
    path jsonpath not null,
    constraint spec_field_pkey primary key (type, field)
);

comment on table jobq_private.spec_field is 'The fields of the specs of endpoints, and their valid values.';

insert into jobq_private.spec_field (type, field, is_needed, meaning, path)
select t.type, f.field, f.is_needed, f.meaning, f.path
from (
    values
    ('{HTTP}'::text[], 'url', true,
        'http:// or https://, a host without a user, and a port if any, of at most 8192 characters',
        jsonpath 'strict $ ? (@ like_regex "^[{][{]" || @ like_regex
            "^https?://(?:[[][0-9a-f:.]+[]]|[^]/?#@:[[:cntrl:]]+)(?::[0-9]{0,5})?(?:(?:[/?#]|[{][{])[^[:cntrl:]]*)?$"
            flag "i" && (!(@ like_regex "^https?://[0-9]+(?:[.][0-9]+){3}(?:[:/?#]|$)" flag "i")
            || @ like_regex "^https?://(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:[.:/?#]|$)){4}"
            flag "i"))'),
    ('{HTTP}', 'method', false, 'GET, POST, PUT, PATCH or DELETE',
        'strict $ ? (@ like_regex "^(GET|POST|PUT|PATCH|DELETE)$")'),
    ('{HTTP}', 'headers', false, 'an object of ASCII texts without line breaks, under names of HTTP'
        ' that are not content-length or transfer-encoding, each once',
        'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
            && !exists (@.keyvalue() ? (!(@.key like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$")
                || @.key like_regex "^(content-length|transfer-encoding)$" flag "i"
                || @.value like_regex "[^\\t -~]" flag "s")))'),
    ('{HTTP}', 'expected_status_codes', false, 'an array of HTTP status codes from 200 to 599',
        'strict $ ? (@.type() == "array" && exists (@[*]) && !exists (@[*] ? (
            @.type() != "number" || !(@ >= 200 && @ <= 599 && @ == @.floor()))))'),
    ('{HTTP}', 'body_template', false, 'any JSON', '$'),
    ('{KAFKA}', 'value_template', false, 'any JSON', '$'),
    ('{HTTP}', 'sign_with', false, 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
    ('{KAFKA}', 'key_template', false, 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
    ('{KAFKA}', 'bootstrap_servers', true, 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
    ('{REDIS_STREAM}', 'stream', true, 'a text', 'strict $ ? (@.type() == "string" && @ != "")'),
    ('{KAFKA}', 'topic', true, 'a topic of 1 to 249 letters, digits and ._-, or a template',
        'strict $ ? (@ like_regex "^[-._0-9A-Za-z]{1,249}$" && @ != "." && @ != ".."
            || @ like_regex "[{][{]")'),
    ('{KAFKA}', 'headers', false, 'an object of texts',
        'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string")))'),
    ('{KAFKA}', 'acks', false, '"0", "1" or "all"',
        'strict $ ? (@ == "0" || @ == "1" || @ == "all")'),
    ('{KAFKA}', 'options', false, 'an object of texts with the names security.protocol,'
        ' sasl.mechanism, sasl.username, sasl.password, ssl.ca.pem, ssl.certificate.pem,'
        ' ssl.key.pem, ssl.key.password, client.id, compression.type and linger.ms',
        'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "string"))
            && !exists (@.keyvalue() ? (!(@.key like_regex
                "^(security[.]protocol|sasl[.](mechanisms?|username|password)|client[.]id|linger[.]ms)$"
                || @.key like_regex
                "^(ssl[.](ca[.]pem|certificate[.]pem|key[.]pem|key[.]password)|compression[.]type)$"))))'),
    ('{REDIS_STREAM}', 'redis_url', true, 'redis:// or rediss:// and a host, or unix:// and a path',
        'strict $ ? (@ like_regex "^([{][{]|rediss?://|unix://([^/?#@]*@)?/)")'),
    ('{REDIS_STREAM}', 'fields_template', false, 'an object with a member, or a template that gives one',
        'strict $ ? (@.type() == "object" && exists (@.*) || @ like_regex "^[{][{].*[}][}]$")'),
    ('{REDIS_STREAM}', 'max_len', false, 'a whole number from 1, or a template that gives one',
        'strict $ ? (@ >= 1 && @ <= 1000000000000 && @ == @.floor()
            || @ like_regex "^[{][{].*[}][}]$")'),
    ('{REDIS_STREAM}', 'approximate_trimming', false, 'true or false',
        'strict $ ? (@.type() == "boolean")'),
    ('{REDIS_STREAM}', 'deliver_once', false, 'true or false', 'strict $ ? (@.type() == "boolean")'),
    ('{HTTP,KAFKA,REDIS_STREAM}', 'timeout_ms', false, 'a whole number from 1 to 3600000',
        'strict $ ? (@ >= 1 && @ <= 3600000 && @ == @.floor())')
) as f (types, field, is_needed, meaning, path)
cross join unnest(f.types) as t (type);

commit;
