-- Deploy jobq:setting to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: delete the declaration of a kind or an endpoint. Refused while it has live jobs, and by
-- a trigger while it has schedules. Raises: JQ007, JQ008.
create or replace function jobq_private.forget_kind(kind text)
returns void
language plpgsql
as $$
begin
    perform jobq_private.check_problem('HAS_DEPENDENTS', case
        when exists (select from jobq_private.job as j where j.kind = forget_kind.kind)
        then format('live jobs of kind %s', kind)
    end);
    delete from jobq_private.kind as d where d.kind = forget_kind.kind;
    perform jobq_private.check_problem(
        'KIND_NOT_FOUND', case when not found then format('kind %s', kind) end
    );
end
$$;

-- Purpose: how many attempts a failed job has: those of its kind if the kind was declared after
-- the job was made and the job has the default, else its own. Inlined, so no SET clause.
create or replace function jobq_private.max_attempts_for(
    kind text, queue text, created_at timestamptz, max_attempts integer
)
returns integer
language sql
stable
as $$
    select coalesce(
        (
            select k.max_attempts
            from jobq_private.setting as g
            join jobq_private.kind as k
                on k.kind = max_attempts_for.kind
                and k.created_at >= max_attempts_for.created_at
            left join jobq_private.queue as q on q.queue = max_attempts_for.queue
            where coalesce(q.max_attempts, g.max_attempts) = max_attempts_for.max_attempts
        ),
        max_attempts_for.max_attempts
    )
$$;

-- Purpose: raise a violated constraint of a declaration as a typed error. Its name is the detail;
-- without a constraint, a priority did not fit its column. Raises: 22023.
create or replace function jobq_private.refuse_setting(violated text)
returns void
language sql
stable
as $$
    select jobq_private.raise_error('INVALID_ARGUMENT', coalesce(
        nullif(violated, ''), 'priority must be from -32768 to 32767'
    ))
$$;

-- Purpose: how a failed job is retried: a delivery as its endpoint declared when the job was made;
-- else by the kind, the queue or the default. Inlined, so no SET clause.
create or replace function jobq_private.retry_policy_for(
    kind text, queue text, delivery_version integer
)
returns setof jobq_private.retry_policy
language sql
stable
rows 1
as $$
    select
        coalesce(v.strategy, k.retry_strategy, p.strategy),
        coalesce(v.initial_delay, k.retry_initial_delay, p.initial_delay),
        coalesce(v.max_delay, k.retry_max_delay, p.max_delay),
        coalesce(v.jitter, k.retry_jitter, p.jitter)
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = retry_policy_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(retry_policy_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset)
    left join jobq_private.kind_retry as v
        on v.kind = retry_policy_for.kind and v.version = retry_policy_for.delivery_version
$$;

-- Purpose: the settings of a new job: of its kind, else of its queue, else the global default.
-- Resolved only here, in retry_policy_for() and in max_attempts_for(). Inlined, so no SET clause.
create or replace function jobq_private.settings_for(kind text, queue text)
returns setof jobq_private.settings
language sql
stable
rows 1
as $$
    select
        coalesce(settings_for.queue, k.queue, 'default'),
        coalesce(k.priority, q.priority, g.priority),
        coalesce(k.max_attempts, q.max_attempts, g.max_attempts),
        coalesce(k.timeout, q.timeout, g.timeout),
        coalesce(k.lease, q.lease, g.lease),
        coalesce(k.dedup, g.dedup),
        coalesce(k.reuse_key_after_failure, g.reuse_key_after_failure),
        k.payload_schema,
        k.json_schema,
        g.max_payload_bytes,
        g.max_payload_depth,
        q.max_depth,
        k.delivery_version,
        k.concurrency_key,
        pg_catalog.num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0,
        coalesce(k.dedup_period, interval '10 s'),
        k.dedup_max_wait,
        k.keep,
        k.cost,
        g.shard_id,
        k.dedup_key
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(settings_for.queue, k.queue, 'default')
$$;

-- Purpose: Changes global defaults. Omitted arguments keep their values.
-- Invariant: existing jobs keep their settings. Raises: 22023.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue or replace.
-- Example: select jobq.configure(max_attempts => 10, retention => '90 days');
create or replace function jobq.configure(
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    dedup text default null,
    reuse_key_after_failure boolean default null,
    max_expiries integer default null,
    max_payload_bytes integer default null,
    max_payload_depth integer default null,
    retention interval default null,
    key_retention interval default null,
    redact_emails boolean default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _before constant jsonb := (select to_jsonb(g) from jobq_private.setting as g);
    _violated text;
begin
    update jobq_private.setting as g
    set
        priority = coalesce(configure.priority, g.priority),
        max_attempts = coalesce(configure.max_attempts, g.max_attempts),
        timeout = coalesce(configure.timeout, g.timeout),
        lease = coalesce(configure.lease, g.lease),
        retry_preset = coalesce(configure.retry_preset, g.retry_preset),
        dedup = coalesce(configure.dedup, g.dedup),
        reuse_key_after_failure = coalesce(
            configure.reuse_key_after_failure, g.reuse_key_after_failure
        ),
        max_expiries = coalesce(configure.max_expiries, g.max_expiries),
        max_payload_bytes = coalesce(configure.max_payload_bytes, g.max_payload_bytes),
        max_payload_depth = coalesce(configure.max_payload_depth, g.max_payload_depth),
        retention = coalesce(configure.retention, g.retention),
        key_retention = coalesce(configure.key_retention, g.key_retention),
        redact_emails = coalesce(configure.redact_emails, g.redact_emails);
    perform jobq_private.audit_settings('configure', 'settings', _before, (
        select to_jsonb(g) from jobq_private.setting as g
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;

grant execute on function jobq.configure to jobq_operator;

comment on function jobq.configure is 'Changes global defaults. Omitted arguments keep their values.';

-- Purpose: Deletes the declaration of a kind; refused while it has live jobs or schedules.
-- Invariant: refused while it has live jobs or schedules, and for an endpoint, which
-- delete_definition() deletes. A job that another transaction adds meanwhile is not seen; like the
-- jobs of every undeclared kind it runs with the settings of its queue.
-- Raises: 22004, JQ004, JQ007, JQ008.
-- Example: select jobq.delete_kind('send_email_v1');
create or replace function jobq.delete_kind(kind text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('kind', num_nulls(kind));
    perform jobq_private.check_problem('IS_ENDPOINT', (
        select format('kind %s', k.kind) from jobq_private.kind as k
        where k.kind = delete_kind.kind and k.delivery_version is not null
    ));
    perform jobq_private.forget_kind(delete_kind.kind);
    perform jobq_private.record_audit('delete_kind', delete_kind.kind);
end
$$;

grant execute on function jobq.delete_kind to jobq_operator;

comment on function jobq.delete_kind is 'Deletes the declaration of a kind; refused while it has live jobs or schedules.';

-- Purpose: Deletes the declaration of a queue; refused while it has live jobs or schedules.
-- Invariant: refused while it has live jobs, and by a trigger while it has schedules.
-- Raises: 22004, JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('queue', num_nulls(queue));
    perform jobq_private.check_problem('HAS_DEPENDENTS', case
        when exists (select from jobq_private.job as j where j.queue = delete_queue.queue)
        then format('live jobs of queue %s', queue)
    end);
    delete from jobq_private.queue as d where d.queue = delete_queue.queue;
    perform jobq_private.check_problem(
        'QUEUE_NOT_FOUND', case when not found then format('queue %s', queue) end
    );
    perform jobq_private.record_audit('delete_queue', delete_queue.queue);
end
$$;

grant execute on function jobq.delete_queue to jobq_operator;

comment on function jobq.delete_queue is 'Deletes the declaration of a queue; refused while it has live jobs or schedules.';

-- Purpose: Returns the JSON Schemas of kinds that only clients can check.
-- Raises: nothing.
-- Column schema: the JSON Schema; kinds without one have no row.
-- Example: select * from jobq_internal.list_payload_schemas('{send_email}');
create or replace function jobq_internal.list_payload_schemas(kinds text[])
returns table (kind text, schema jsonb)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select k.kind, k.json_schema
    from jobq_private.kind as k
    where k.kind = any(list_payload_schemas.kinds) and k.json_schema is not null
$$;

grant execute on function jobq_internal.list_payload_schemas to jobq_producer, jobq_operator;

comment on function jobq_internal.list_payload_schemas is 'Returns the JSON Schemas of kinds that only clients can check.';

-- Purpose: Lists which of these kinds are not declared, or only by an older version of the program.
-- Raises: nothing.
-- Argument version: version of the program, as for put_kind(); null means only undeclared
-- kinds.
-- Returns: the kinds, by name.
-- Example: select * from jobq_internal.list_undeclared_kinds('{send_email,resize}', 12);
create or replace function jobq_internal.list_undeclared_kinds(
    kinds text[], version bigint default null
)
returns table (kind text)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select u.kind
    from unnest(list_undeclared_kinds.kinds) as u (kind)
    where not exists (
        select from jobq_private.kind as k
        where k.kind = u.kind
        and (list_undeclared_kinds.version is null or k.version >= list_undeclared_kinds.version)
    )
    order by u.kind
$$;

grant execute on function jobq_internal.list_undeclared_kinds
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq_internal.list_undeclared_kinds is 'Lists which of these kinds are not declared, or only by an older version of the program.';

-- Purpose: Declares a kind: its queue, limits, retries, dedup, retention and payload schema.
-- Invariant: null means the queue's setting, else the global default.
-- The last writer wins, with a version the newest. Existing jobs keep their settings,
-- except the backoff, and max_attempts if the kind was not declared when they were made.
-- put_endpoint() declares endpoints; the row is locked before it is checked, so one that comes at
-- the same time is seen. Raises: 22004, 22023, 42501, JQ004, JQ006, JQ007.
-- Argument queue: the default queue of its jobs.
-- Argument dedup_key: path of the dedup key in the payload, such as {user_id}; several paths as
-- {{user_id},{day}}; {} means the whole payload. Jobs without these members have no key.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Argument concurrency_key: path of the concurrency key in the payload, such as {customer_id};
-- jobs without this member have no key. Refused if payload_schema does not allow the member.
-- Argument cost: path of the cost in the payload, a number, such as {tokens}; jobs without this
-- member cost 1.
-- Argument dead_letter_kind: kind of the job that is enqueued when a job dies, with job_id, kind,
-- queue, payload, metadata, error_code, error and attempts of the dead one in its payload.
-- Argument version: increasing version of the declaring program; if this or a newer version has
-- declared the kind, nothing changes. null replaces any declaration and keeps its version, so
-- that only a newer one replaces it again.
-- Example: select jobq.put_kind('send_email', queue => 'mail', max_attempts => 3, timeout => '30 s');
create or replace function jobq.put_kind(
    kind text,
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    retry_strategy text default null,
    retry_initial_delay interval default null,
    retry_max_delay interval default null,
    retry_jitter double precision default null,
    dedup text default null,
    reuse_key_after_failure boolean default null,
    payload_schema jsonb default null,
    run text default null,
    concurrency_key text[] default null,
    max_running integer default null,
    rate_limit integer default null,
    rate_period interval default null,
    rate_burst integer default null,
    dedup_period interval default null,
    dedup_max_wait interval default null,
    keep_succeeded interval default null,
    keep_dead interval default null,
    keep_cancelled interval default null,
    retry_on text[] default null,
    key_max_running integer default null,
    key_rate_limit integer default null,
    key_rate_period interval default null,
    key_rate_burst integer default null,
    ordered boolean default null,
    on_dead text default null,
    version bigint default null,
    cost text[] default null,
    dedup_key text[] default null,
    dead_letter_kind text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _before constant jsonb := (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    );
    _keep constant interval[] := array[
        put_kind.keep_succeeded, put_kind.keep_dead, put_kind.keep_cancelled
    ];
    _problem text;
begin
    perform jobq_private.check_given('kind', num_nulls(put_kind.kind));
    perform jobq_private.check_argument(case
        when put_kind.version < 1 then 'version must be at least 1'
        when (select max(k) from unnest(_keep) as k)
            > (select g.retention from jobq_private.setting as g)
        then 'a kind cannot keep jobs longer than the global retention'
    end);
    -- With its queue, by which a grant of queues allows the row, and with what triggers check, also
    -- for a version that is not stored.
    insert into jobq_private.kind as k (
        kind, queue, run, payload_schema, concurrency_key, cost, dedup_key
    )
    values (
        put_kind.kind, put_kind.queue, put_kind.run, put_kind.payload_schema,
        put_kind.concurrency_key, put_kind.cost, put_kind.dedup_key
    )
    on conflict on constraint kind_pkey do nothing;
    update jobq_private.kind as k
    set
        queue = put_kind.queue, priority = put_kind.priority,
        max_attempts = put_kind.max_attempts, timeout = put_kind.timeout,
        lease = put_kind.lease, retry_preset = put_kind.retry_preset,
        retry_strategy = put_kind.retry_strategy,
        retry_initial_delay = put_kind.retry_initial_delay,
        retry_max_delay = put_kind.retry_max_delay,
        retry_jitter = put_kind.retry_jitter, dedup = put_kind.dedup,
        dedup_key = put_kind.dedup_key, dead_letter_kind = put_kind.dead_letter_kind,
        dedup_period = put_kind.dedup_period, dedup_max_wait = put_kind.dedup_max_wait,
        reuse_key_after_failure = put_kind.reuse_key_after_failure,
        payload_schema = put_kind.payload_schema, run = put_kind.run,
        retry_on = put_kind.retry_on, concurrency_key = put_kind.concurrency_key,
        max_running = put_kind.max_running, rate_limit = put_kind.rate_limit,
        rate_period = put_kind.rate_period, rate_burst = put_kind.rate_burst,
        key_max_running = put_kind.key_max_running,
        key_rate_limit = put_kind.key_rate_limit,
        key_rate_period = put_kind.key_rate_period,
        key_rate_burst = put_kind.key_rate_burst, ordered = put_kind.ordered,
        on_dead = put_kind.on_dead, cost = put_kind.cost,
        keep = case when num_nonnulls(variadic _keep) > 0 then _keep end,
        version = coalesce(put_kind.version, k.version), updated_at = now()
    where k.kind = put_kind.kind
    and coalesce(put_kind.version > k.version, true);
    perform jobq_private.check_problem('IS_ENDPOINT', (
        select format('kind %s', k.kind) from jobq_private.kind as k
        where found and k.kind = put_kind.kind and k.delivery_version is not null
    ));
    perform jobq_private.audit_settings('put_kind', put_kind.kind, _before, (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.refuse_setting(_problem);
end
$$;

grant execute on function jobq.put_kind to jobq_operator, jobq_worker;

comment on function jobq.put_kind is 'Declares a kind: its queue, limits, retries, dedup, retention and payload schema.';

-- Purpose: Declares a queue: settings of its jobs that replace the global defaults.
-- Invariant: null means the default. The last writer wins; a pause stays. Raises: 22004, 22023.
-- Example: select jobq.put_queue('mail', max_depth => 100000);
create or replace function jobq.put_queue(
    queue text,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    max_depth integer default null,
    key_max_running integer default null,
    max_running integer default null,
    rate_limit integer default null,
    rate_period interval default null,
    rate_burst integer default null,
    key_rate_limit integer default null,
    key_rate_period interval default null,
    key_rate_burst integer default null,
    ordered boolean default null,
    on_dead text default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _before constant jsonb := (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    );
    _violated text;
begin
    perform jobq_private.check_given('queue', num_nulls(put_queue.queue));
    insert into jobq_private.queue as q (queue)
    values (put_queue.queue)
    on conflict on constraint queue_pkey do nothing;
    update jobq_private.queue as q
    set
        priority = put_queue.priority, max_attempts = put_queue.max_attempts,
        timeout = put_queue.timeout, lease = put_queue.lease,
        retry_preset = put_queue.retry_preset, max_depth = put_queue.max_depth,
        max_running = put_queue.max_running, rate_limit = put_queue.rate_limit,
        rate_period = put_queue.rate_period, rate_burst = put_queue.rate_burst,
        key_max_running = put_queue.key_max_running,
        key_rate_limit = put_queue.key_rate_limit,
        key_rate_period = put_queue.key_rate_period,
        key_rate_burst = put_queue.key_rate_burst, ordered = put_queue.ordered,
        on_dead = put_queue.on_dead,
        updated_at = now()
    where q.queue = put_queue.queue;
    perform jobq_private.audit_settings('put_queue', put_queue.queue, _before, (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;

grant execute on function jobq.put_queue to jobq_operator;

comment on function jobq.put_queue is 'Declares a queue: settings of its jobs that replace the global defaults.';

-- Purpose: Returns the effective settings of a kind in a queue: from the kind, the queue or the
-- defaults.
-- Invariant: resolved as by enqueue(). Raises: nothing.
-- Argument kind: the kind; null means an undeclared kind.
-- Argument queue: the queue; null means the kind's, else default.
-- Returns: a JSON object: the limits of a kind have kind_ before their names; queue, priority, max_attempts, timeout, lease, dedup,
-- max_depth, retry_strategy, retention, run and what else holds; every default of
-- configure() is there.
-- Example: select jobq.settings('send_email') ->> 'max_attempts';
create or replace function jobq.settings(kind text default null, queue text default null)
returns jsonb
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- Before 18, PostgreSQL would compile this plan, which takes a second.
set jit = off
as $$
    select to_jsonb(s) - '{delivery_version,is_limited,keep,shard_id}'::text[] || to_jsonb(r)
    || jsonb_build_object(
        'max_expiries', g.max_expiries, 'retention', g.retention,
        'keep_succeeded', least(s.keep[1], g.retention),
        'keep_dead', least(s.keep[2], g.retention),
        'keep_cancelled', least(s.keep[3], g.retention),
        'key_retention', g.key_retention, 'redact_emails', g.redact_emails,
        'run', k.run, 'dead_letter_kind', k.dead_letter_kind
    ) || (
        select jsonb_object_agg(o.prefix || n.name, o.declared -> n.name)
        from unnest('{
            max_running, rate_limit, rate_period, rate_burst, key_max_running, key_rate_limit,
            key_rate_period, key_rate_burst, ordered, on_dead
        }'::text[]) as n (name)
        cross join (values ('', to_jsonb(q)), ('kind_', to_jsonb(k))) as o (prefix, declared)
    )
    from jobq_private.settings_for(kind, queue) as s
    cross join jobq_private.retry_policy_for(kind, queue, s.delivery_version) as r
    cross join jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings.kind
    left join jobq_private.queue as q on q.queue = s.queue
$$;

grant execute on function jobq.settings
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.settings is 'Returns the effective settings of a kind in a queue: from the kind, the queue or the defaults.';

-- Purpose: Returns the release of the schema.
-- Invariant: the same as that of the Python package and the clients. Raises: nothing.
-- Returns: the version, as semver.org defines it.
-- Example: select jobq.version();
create or replace function jobq.version()
returns text
language sql
immutable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select '1.0.0'
$$;

grant execute on function jobq.version
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.version is 'Returns the release of the schema.';

commit;
