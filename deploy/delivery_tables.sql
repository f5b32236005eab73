-- Deploy jobq:delivery_tables to pg
-- Payload specs, configs, secrets, endpoints, and their versions. Clients encrypt secrets.
begin;
set local role jobq_owner;

-- The document is the schema of a payload spec, and the values of a config.
create table jobq_private.definition (
    type text not null,
    name text not null,
    document jsonb,
    ciphertext bytea,
    key_id text,
    version integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint definition_pkey primary key (type, name),
    constraint definition_type_check
    check (
        case when type = 'secret' then num_nulls(document, ciphertext, key_id) = 1
        else type in ('payload_spec', 'config') and jsonb_typeof(document) = 'object' end
    ),
    constraint "name must match [a-z0-9][a-z0-9_-]{0,127}"
    check (name ~ '^[a-z0-9][a-z0-9_-]{0,127}$'),
    constraint "ciphertext must have 28 to 65564 bytes"
    check (octet_length(ciphertext) between 28 and 65564),
    constraint "key_id must have 1 to 64 characters" check (length(key_id) between 1 and 64)
);

comment on table jobq_private.definition is
'Payload specs, configs, and secrets, which are encrypted under a key that the database never has.';

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
    references jobq_private.kind (kind) on delete cascade
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

-- Includes what older versions refer to, because jobs may still be delivered by them.
create table jobq_private.endpoint_definition (
    endpoint text not null,
    type text not null,
    name text not null,
    is_current boolean not null default true,
    constraint endpoint_definition_pkey primary key (endpoint, type, name),
    constraint endpoint_definition_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

comment on table jobq_private.endpoint_definition is
'The payload specs, configs and secrets that the versions of an endpoint refer to.';

create table jobq_private.definition_version (
    type text not null,
    name text not null,
    version integer not null,
    document jsonb not null,
    created_at timestamptz not null default now(),
    constraint definition_version_pkey primary key (type, name, version),
    constraint "name must match [a-z0-9][a-z0-9_-]{0,127}"
    check (name ~ '^[a-z0-9][a-z0-9_-]{0,127}$')
);

comment on table jobq_private.definition_version is 'Every version of every payload spec, config and endpoint, and when each secret changed.';

-- The fields of the specs of endpoints, and the keywords of JSON Schema (draft 2020-12). Strict
-- paths, so that an array is not taken for its elements.
create table jobq_private.spec_field (
    type text not null,
    field text not null,
    is_needed boolean not null,
    meaning text not null,
    path jsonpath not null,
    constraint spec_field_pkey primary key (type, field)
);

comment on table jobq_private.spec_field is
'The fields of the specs of endpoints and of JSON Schemas, and their valid values.';

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

insert into jobq_private.spec_field (type, field, is_needed, meaning, path)
select 'JSON_SCHEMA', k.field, false, c.meaning, c.path
from (
    values
    ('$ref $dynamicRef', 'a location in the schema, or in the draft''s own', jsonpath
        'strict $ ? (@ like_regex "^#" || @ starts with "https://json-schema.org/draft/2020-12/")'),
    ('$id', 'an address without a fragment', 'strict $ ? (@ like_regex "^[^#]*#?$")'),
    ('$anchor $dynamicAnchor', 'a plain name',
        'strict $ ? (@ like_regex "^[A-Za-z_][-A-Za-z0-9._]*$")'),
    ('$schema $comment title description format pattern contentEncoding contentMediaType', 'a text',
        'strict $ ? (@.type() == "string")'),
    ('deprecated readOnly writeOnly uniqueItems', 'true or false',
        'strict $ ? (@.type() == "boolean")'),
    ('minimum maximum exclusiveMinimum exclusiveMaximum', 'a number',
        'strict $ ? (@.type() == "number")'),
    ('multipleOf', 'a number above 0', 'strict $ ? (@ > 0)'),
    ('minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains',
        'a whole number, 0 or more', 'strict $ ? (@ >= 0 && @ == @.floor())'),
    ('enum examples', 'an array', 'strict $ ? (@.type() == "array")'),
    ('required', 'an array of different names',
        'strict $ ? (@.type() == "array" && !exists (@[*] ? (@.type() != "string")))'),
    ('dependentRequired', 'an object of arrays of names',
        'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "array"
            || exists (@[*] ? (@.type() != "string")))))'),
    ('type', 'a type, or an array of different ones',
        'strict $ ? (@ like_regex "^(object|array|string|number|integer|boolean|null)$"
            || (@.type() == "array" && exists (@[*]) && !exists (@[*] ? (!(@ like_regex
                "^(object|array|string|number|integer|boolean|null)$")))))'),
    ('not if then else items contains additionalProperties propertyNames contentSchema'
        ' unevaluatedItems unevaluatedProperties', 'a schema',
        'strict $ ? (@.type() == "object" || @.type() == "boolean")'),
    ('allOf anyOf oneOf prefixItems', 'an array of schemas',
        'strict $ ? (@.type() == "array" && exists (@[*])
            && !exists (@[*] ? (@.type() != "object" && @.type() != "boolean")))'),
    ('$defs definitions dependentSchemas patternProperties properties', 'an object of schemas',
        'strict $ ? (@.type() == "object"
            && !exists (@.* ? (@.type() != "object" && @.type() != "boolean")))')
) as c (fields, meaning, path)
cross join string_to_table(c.fields, ' ') as k (field);

commit;
