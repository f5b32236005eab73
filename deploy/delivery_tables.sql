-- Deploy jobq:delivery_tables to pg
-- What deliveries are made of: payload specs, configs, secrets, endpoints, and all their
-- versions. Secrets are encrypted before they get here.
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

comment on table jobq_private.payload_spec is 'JSON Schemas of what endpoints take.';

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

comment on table jobq_private.secret is 'Secrets of endpoints, encrypted under a key that is never here.';

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

comment on table jobq_private.endpoint is 'Kinds whose handler is a delivery: where to, and in what shape.';

-- What a claim has found of paused endpoints. Each is due at parked_until(), and gets this
-- run_at back.
create table jobq_private.parked_job (
    job_id uuid not null,
    endpoint text not null,
    run_at timestamptz not null,
    constraint parked_job_pkey primary key (job_id),
    constraint parked_job_endpoint_fkey foreign key (endpoint)
    references jobq_private.endpoint (endpoint) on delete cascade
);

create index parked_job_endpoint_idx on jobq_private.parked_job (endpoint);

comment on table jobq_private.parked_job is 'When the jobs were due that wait for their endpoint to be resumed.';

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

-- Which payload specs and configs the versions of an endpoint refer to, the old ones too: jobs
-- may still be delivered by them.
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

commit;
