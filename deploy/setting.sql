-- Deploy jobq:setting to pg
-- Made by sql/snapshot.py from sql/setting/: edit that.
begin;
set local role jobq_owner;

-- Purpose: an interval as a whole number of milliseconds.
-- Invariant: months count as 30 days. Raises: nothing.
create or replace function jobq_private.milliseconds(length interval)
returns bigint
language sql
immutable
strict
parallel safe
as $$
    select (pg_catalog.date_part('epoch', length) * 1000)::bigint
$$;

revoke all on function jobq_private.milliseconds from public;

comment on function jobq_private.milliseconds is
'An interval as a whole number of milliseconds.';

-- Purpose: the class of each sort of advisory lock, the first key of pg_advisory_lock().
-- Invariant: all that jobq takes are here, so that no two mean the same. waiting, producing
-- and awaiting are W, P and E of docs/wake-ups.md, awaiting_events that for all jobs, ending
-- that of one job; emitting is that of events; closing that of lanes (call_lane()), limiting
-- that of a queue's limits, gating that of gates that are made, laning that of lanes that are
-- made, batching that of a batch (enter_batches()), joining that of graphs (join_alone());
-- maintaining is held by who calls maintain(). No SET clause, so that it is inlined and
-- costs nothing.
-- Raises: nothing.
create or replace function jobq_private.lock_class(name text)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'limiting' then 1785684599
        when 'gating' then 1785684600
        when 'laning' then 1785684601
        when 'batching' then 1785684610
        when 'joining' then 1785684611
        when 'awaiting' then 1785684612
        when 'awaiting_events' then 1785684613
    end
$$;

revoke all on function jobq_private.lock_class from public;

comment on function jobq_private.lock_class is
'The first key of each sort of advisory lock.';

-- Purpose: whether a log-in has functions of this owner run: its own, those of the database's
-- owner, and those of superusers.
-- Invariant: a role that others belong to as well is not enough: any of them could have made
-- the function. Raises: nothing.
create or replace function jobq_private.is_trusted(owner oid, login name)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from pg_catalog.pg_roles as o
        where o.oid = is_trusted.owner and (o.rolsuper or o.rolname = is_trusted.login)
    )
    or is_trusted.owner = (
        select d.datdba
        from pg_catalog.pg_database as d
        where d.datname = current_database()
    )
$$;

revoke all on function jobq_private.is_trusted from public;

comment on function jobq_private.is_trusted is
'Whether a log-in has functions of this owner run.';

-- Purpose: the function that a kind runs: who owns it, and whether whoever has logged in, and the
-- role that they have set, may execute it; no row where there is none.
-- Invariant: looked up in the catalog by its schema and name, so that no search path counts;
-- it takes one jsonb and returns jsonb, or takes and returns jsonb[], which goes first where
-- there are both. Raises: nothing.
create or replace function jobq_private.sql_function(run text)
returns table (function oid, owner oid, may_execute boolean, is_batch boolean)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        p.oid,
        p.proowner,
        (
            select bool_and(
                has_function_privilege(u.name, p.oid, 'execute')
                and has_schema_privilege(u.name, n.oid, 'usage')
            )
            from (
                values (session_user), (nullif(current_setting('role'), 'none')::name)
            ) as u (name)
            where u.name is not null
        ),
        p.prorettype = 'jsonb[]'::regtype
    from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = (parse_ident(sql_function.run))[1]
    and p.proname = (parse_ident(sql_function.run))[2]
    and (p.proargtypes, p.prorettype) in (
        ('3802'::oidvector, 'jsonb'::regtype), ('3807'::oidvector, 'jsonb[]'::regtype)
    )
    and p.prokind = 'f'
    and p.provariadic = 0
    and not p.proretset
    order by p.prorettype desc
    limit 1
$$;

revoke all on function jobq_private.sql_function from public;

comment on function jobq_private.sql_function is
'Finds the function that a kind runs, and says whether whoever has logged in may execute it.';

-- Purpose: what keeps every worker's log-in from running this function, though it is there; null
-- where one may run it.
-- Invariant: reads only. Superusers count only where no other log-in is a worker's: else they
-- would hide that no worker may execute it. Raises: nothing.
create or replace function jobq_private.sql_function_bar(run text)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with login as (
        select r.rolname, r.rolsuper, bool_and(r.rolsuper) over () as is_alike
        from pg_catalog.pg_roles as r
        where r.rolcanlogin
        and pg_has_role(r.rolname, 'jobq_worker', 'usage')
    )
    select format(
        'a worker whose log-in may call %s and trusts its owner %s', sql_function_bar.run,
        pg_get_userbyid(f.owner)
    )
    from jobq_private.sql_function(sql_function_bar.run) as f
    where not exists (
        select from login as l
        where l.rolsuper = l.is_alike
        and jobq_private.is_trusted(f.owner, l.rolname)
        and has_function_privilege(l.rolname, f.function, 'execute')
        and has_schema_privilege(
            l.rolname, (parse_ident(sql_function_bar.run))[1], 'usage'
        )
    )
$$;

revoke all on function jobq_private.sql_function_bar from public;

comment on function jobq_private.sql_function_bar is
'What keeps every worker''s log-in from running a function, or null.';

-- Purpose: why a kind cannot run this function: it is not there, or has another signature; null
-- when it can.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.sql_function_problem(run text)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select format(
        '%s(jsonb) returns jsonb, or the same with jsonb[]; found: %s', sql_function_problem.run,
        coalesce((
            select string_agg(format(
                '%s(%s) returns %s',
                case p.prokind when 'a' then 'aggregate ' when 'p' then 'procedure ' else '' end,
                pg_get_function_arguments(p.oid),
                coalesce(pg_get_function_result(p.oid), 'nothing')
            ), ', ')
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where array[n.nspname, p.proname]::text[] = parse_ident(sql_function_problem.run)
        ), 'none')
    )
    where not exists (select from jobq_private.sql_function(sql_function_problem.run) as f)
$$;

revoke all on function jobq_private.sql_function_problem from public;

comment on function jobq_private.sql_function_problem is
'Why a kind cannot run this function, or null.';

-- Purpose: what enqueue() knows of the tables by heart: the functions that are constants, what each
-- should say, and whether it says so.
-- Invariant: reads only. That a kind or queue has rules stays once it is written down, and is looked
-- for until then. The texts do not depend on the session's settings. Raises: nothing.
create or replace function jobq_private.constants()
returns table (name text, schema text, type text, body text, is_right boolean)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set intervalstyle = postgres
as $$
    with written as materialized (
        select
            s.name,
            (
                select p.prosrc from pg_proc as p
                where p.oid = to_regprocedure(format('jobq_private.%s()', s.name))
            ) as body
        from unnest('{defaults,has_kind_rules,has_queue_rules}'::text[]) as s (name)
    )
    select w.name, c.schema, c.type, c.body, w.body is not distinct from c.body
    from written as w
    cross join lateral (
        select 'jobq_private', 'settings', format(
            'select (''default'', %L, %L, interval %L, interval %L, %L, %L, null, null, '
            '%L, %L, null, null, null, false, interval ''10 s'', null, null)'
            '::jobq_private.settings',
            g.priority, g.max_attempts, g.timeout, g.lease, g.dedup,
            g.reuse_key_after_failure, g.max_payload_bytes, g.max_payload_depth
        )
        from jobq_private.setting as g
        where w.name = 'defaults'
        union all
        select 'pg_catalog', 'bool', 'select ' || case
            when w.body = 'select true' then true
            when w.name = 'has_kind_rules' then exists (
                select from jobq_private.kind as k
                where num_nonnulls(
                    k.queue, k.priority, k.max_attempts, k.timeout, k.lease, k.concurrency_key,
                    k.max_running, k.rate_limit, k.keep, k.payload_schema, k.json_schema,
                    k.delivery_version
                ) > 0
            )
            else exists (
                select from jobq_private.queue as q
                where num_nonnulls(
                    q.priority, q.max_attempts, q.timeout, q.lease, q.max_depth
                ) > 0
            )
        end
        where w.name <> 'defaults'
    ) as c (schema, type, body)
$$;

revoke all on function jobq_private.constants from public;

comment on function jobq_private.constants is
'The constants that enqueue() goes by, what each should say, and whether it says so.';

-- Purpose: whether a queue is paused.
-- Invariant: an undeclared queue is not. Raises: nothing.
create or replace function jobq_private.is_paused(queue text)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from jobq_private.queue as q
        where q.queue = is_paused.queue and q.paused_at is not null
    );
end
$$;

revoke all on function jobq_private.is_paused from public;

comment on function jobq_private.is_paused is
'Says whether a queue is paused.';

-- Purpose: write down anew the constants that do not say what the tables say.
-- Invariant: under the lock of the one row of setting, so never twice at once, and read under
-- it; what was planned with the old ones is planned anew. Raises: nothing.
create or replace function jobq_private.write_constants()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _constant record;
    _written bigint := 0;
begin
    perform from jobq_private.setting for update;
    for _constant in select * from jobq_private.constants() as c where not c.is_right loop
        execute format(
            'create or replace function jobq_private.%I() returns %I.%I '
            'language sql stable parallel safe security invoker as %L',
            _constant.name, _constant.schema, _constant.type, _constant.body
        );
        _written := _written + 1;
    end loop;
    return _written;
end
$$;

revoke all on function jobq_private.write_constants from public;

comment on function jobq_private.write_constants is
'Writes the constants that enqueue() goes by anew where they differ from the tables.';

-- Purpose: what holds for a new job of which neither its kind nor its queue says anything.
-- Invariant: constants, so that an enqueue reads no table for them; setting has them, and
-- write_constants() writes this anew when it changes, upon which sessions plan anew. Stable for
-- that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.defaults
do $do$
begin
    perform jobq_private.write_constants();
end
$do$;

revoke all on function jobq_private.defaults() from public;

comment on function jobq_private.defaults() is
'What holds for a new job of which neither its kind nor its queue says anything.';

-- Purpose: what is wrong with a payload under a JSON Schema, as the optional extension
-- pg_jsonschema says; null when nothing is, or the extension is not here.
-- Invariant: only a member of the extension is called, whatever else bears its name, and
-- only if that is allowed; its schema can be any, so the call is dynamic. Schemas that lead out of themselves are left
-- to deliveries. Raises: nothing of its own.
create or replace function jobq_private.json_schema_violation(schema jsonb, value jsonb)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _draft constant jsonb :=
        '{"$schema": "https://json-schema.org/draft/2020-12/schema"}'::jsonb;
    _namespace text;
    _fits boolean;
begin
    select n.nspname into _namespace
    from pg_catalog.pg_extension as x
    join pg_catalog.pg_depend as d
        on d.refclassid = 'pg_catalog.pg_extension'::regclass
        and d.refobjid = x.oid
        and d.classid = 'pg_catalog.pg_proc'::regclass
        and d.deptype = 'e'
    join pg_catalog.pg_proc as p
        on p.oid = d.objid and p.proname = 'jsonb_matches_schema'
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where x.extname = 'pg_jsonschema'
    and has_schema_privilege(n.oid, 'usage')
    and has_function_privilege(p.oid, 'execute')
    and not schema @? '$.** ? (@.type() == "object").keyvalue()
        ? (@.key == "$ref" || @.key == "$dynamicRef") ? (!(@.value starts with "#"))';

    if found then
        execute format('select %I.jsonb_matches_schema($1, $2)', _namespace)
        into _fits using (schema || _draft)::json, value;
    end if;
    return case when not _fits then 'payload does not fit the payload spec' end;
end
$$;

revoke all on function jobq_private.json_schema_violation from public;

comment on function jobq_private.json_schema_violation is
'Says whether a payload does not fit a JSON Schema, where the extension pg_jsonschema is.';

-- Purpose: what is wrong with a JSON value under a schema, or null when nothing is.
-- Invariant: understands just the JSON Schema keywords that schema_problem() admits, so
-- that nothing in a stored schema is passed over. Raises: nothing.
create or replace function jobq_private.schema_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _types jsonb := schema -> 'type';
    _type text := jsonb_typeof(value);
    _found text;
    _size integer;
    _items jsonb;
begin
    if _type = 'number' and value::numeric = trunc(value::numeric) then
        _type := 'integer';
    end if;
    if _types is not null and not (
        _types @> to_jsonb(_type) or (_type = 'integer' and _types @> '"number"')
    ) then
        return format('%s must be %s, not %s', path, _types, _type);
    end if;
    if schema ? 'enum' and (
        not schema -> 'enum' @> jsonb_build_array(value)
        or _type in ('object', 'array') and not exists (
            select from jsonb_array_elements(schema -> 'enum') as e (item) where e.item = value
        )
    ) then
        return format('%s must be one of %s', path, left((schema -> 'enum')::text, 1000));
    end if;

    if _type in ('number', 'integer') then
        if value::numeric < (schema ->> 'minimum')::numeric
            or value::numeric > (schema ->> 'maximum')::numeric
        then
            return format('%s must be from %s to %s', path,
                coalesce(schema ->> 'minimum', '-∞'), coalesce(schema ->> 'maximum', '∞'));
        end if;
    elsif _type = 'string' then
        _size := length(value #>> '{}');
        if _size < (schema ->> 'minLength')::integer
            or _size > (schema ->> 'maxLength')::integer
        then
            return format('%s must have %s to %s characters', path,
                coalesce(schema ->> 'minLength', '0'), coalesce(schema ->> 'maxLength', '∞'));
        end if;
        if schema ? 'pattern'
            and not jobq_private.matches_pattern(value #>> '{}', schema ->> 'pattern')
        then
            return format('%s must match %s', path, schema ->> 'pattern');
        end if;
    elsif _type = 'array' and schema ? 'items' then
        _items := schema -> 'items';
        select f.violation into _found
        from (
            select d.item, min(d.n) as n
            from jsonb_array_elements(value) with ordinality as d (item, n)
            group by d.item
        ) as e
        cross join lateral (
            select jobq_private.schema_violation(
                _items, e.item, format('%s[%s]', path, e.n - 1)
            )
            offset 0
        ) as f (violation)
        where f.violation is not null
        limit 1;
        return _found;
    elsif _type = 'object' then
        return jobq_private.object_violation(schema, value, path);
    end if;
    return null;
end
$$;

revoke all on function jobq_private.schema_violation from public;

comment on function jobq_private.schema_violation is
'Says what is wrong with a JSON value under a schema, or null.';

-- Purpose: whether another session holds an advisory lock.
-- Invariant: it is tried, and let go in the same expression, between whose parts no cancel
-- comes. Two that look at the same moment may take each other for a holder. No SET clause, so
-- that it is inlined. Raises: nothing.
create or replace function jobq_private.is_held(class text, slot integer)
returns boolean
language sql
volatile
parallel unsafe
security invoker
as $$
    select not (
        pg_catalog.pg_try_advisory_lock(jobq_private.lock_class(class), slot)
        and pg_catalog.pg_advisory_unlock(jobq_private.lock_class(class), slot)
    )
$$;

revoke all on function jobq_private.is_held from public;

comment on function jobq_private.is_held is
'Whether another session holds an advisory lock.';

-- Purpose: what holds for a new job of a kind in a queue: the kind's word, else the queue's,
-- else the global default. A call's own argument goes before all three, at the call.
-- Invariant: one row; with retry_policy_for(), the one place of resolution; undeclared
-- kinds and queues get the defaults. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.settings_for(kind text, queue text)
returns setof jobq_private.settings
language sql
stable
parallel safe
security invoker
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
        pg_catalog.num_nonnulls(k.max_running, k.rate_limit) > 0,
        coalesce(k.dedup_period, interval '10 s'),
        k.dedup_max_wait,
        k.keep
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = settings_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(settings_for.queue, k.queue, 'default')
$$;

revoke all on function jobq_private.settings_for from public;

comment on function jobq_private.settings_for is
'Resolves the settings of a new job: kind, else queue, else global default.';

-- Purpose: refuse to have a kind run what is not there or has another signature, and what
-- whoever declares it may not execute.
-- Invariant: reads only. Raises: 42501, JQ007.
create or replace function jobq_private.check_sql_function(run text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- What parse_ident() takes without quotes.
    _name constant text := '([a-z_]|[^\u0001-\u007f])([a-z0-9_$]|[^\u0001-\u007f])*';
    _problem text;
begin
    if run !~* format('^%1$s\.%1$s$', _name) then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', format(
            'run must be a schema and a function without quotes: %s', run
        ));
    end if;
    _problem := jobq_private.sql_function_problem(run);
    if _problem is not null then
        perform jobq_private.raise_error('FUNCTION_NOT_FOUND', _problem);
    elsif not (select f.may_execute from jobq_private.sql_function(run) as f) then
        perform jobq_private.raise_error('FUNCTION_DENIED', run);
    end if;
end
$$;

revoke all on function jobq_private.check_sql_function from public;

comment on function jobq_private.check_sql_function is
'Refuses a function that a kind cannot run.';

-- Purpose: forget what was declared of a kind, an endpoint's too.
-- Invariant: refused while live jobs or schedules of the kind exist, in their graphs too. Raises: JQ007, JQ008.
create or replace function jobq_private.forget_kind(kind text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.job as j where j.kind = forget_kind.kind
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of kind %s', forget_kind.kind
        ));
    elsif exists (
        select from jobq_private.schedule as s
        where (
            s.kind = forget_kind.kind or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object('kind', forget_kind.kind)]
            )
        )
        and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of kind %s', forget_kind.kind
        ));
    end if;
    delete from jobq_private.kind as d where d.kind = forget_kind.kind;
    if not found then
        perform jobq_private.raise_error('KIND_NOT_FOUND', format(
            'kind %s', forget_kind.kind
        ));
    end if;
end
$$;

revoke all on function jobq_private.forget_kind from public;

comment on function jobq_private.forget_kind is
'Forgets what was declared of a kind, unless live jobs or schedules of it exist.';

-- Purpose: whether any kind says, or has ever said, anything that enqueue() goes by.
-- Invariant: a constant, so that who has no such kind pays for no look at the table; the first
-- that says something has it written anew (write_constants()), upon which sessions plan anew, and it
-- stays. As with defaults(), a transaction that has enqueued before may do so without it until
-- it ends. Stable for that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.has_kind_rules
do $do$
begin
    perform jobq_private.write_constants();
end
$do$;

revoke all on function jobq_private.has_kind_rules() from public;

comment on function jobq_private.has_kind_rules() is
'Whether any kind has ever said anything that enqueue() goes by.';

-- Purpose: whether any queue says, or has ever said, anything that enqueue() goes by.
-- Invariant: a constant, so that who has no such queue pays for no look at the table; the first
-- that says something has it written anew (write_constants()), upon which sessions plan anew, and it
-- stays. As with defaults(), a transaction that has enqueued before may do so without it until
-- it ends. Stable for that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.has_queue_rules
do $do$
begin
    perform jobq_private.write_constants();
end
$do$;

revoke all on function jobq_private.has_queue_rules() from public;

comment on function jobq_private.has_queue_rules() is
'Whether any queue has ever said anything that enqueue() goes by.';

-- Purpose: the limits that hold for jobs of a kind in a queue, for people to read.
-- Invariant: reads only; null for each that there is not. Raises: nothing.
create or replace function jobq_private.limits_for(kind text, queue text)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'max_running', q.max_running, 'rate_limit', q.rate_limit,
        'rate_period', q.rate_period, 'rate_burst', q.rate_burst,
        'key_max_running', q.key_max_running, 'key_rate_limit', q.key_rate_limit,
        'key_rate_period', q.key_rate_period, 'key_rate_burst', q.key_rate_burst,
        'ordered', q.ordered, 'on_dead', q.on_dead,
        'kind_max_running', k.max_running, 'kind_rate_limit', k.rate_limit,
        'kind_rate_period', k.rate_period, 'kind_rate_burst', k.rate_burst,
        'kind_key_max_running', k.key_max_running, 'kind_key_rate_limit', k.key_rate_limit,
        'kind_key_rate_period', k.key_rate_period, 'kind_key_rate_burst', k.key_rate_burst,
        'kind_ordered', k.ordered, 'kind_on_dead', k.on_dead
    )
    from (values (1)) as v
    left join jobq_private.queue as q on q.queue = limits_for.queue
    left join jobq_private.kind as k on k.kind = limits_for.kind
$$;

revoke all on function jobq_private.limits_for from public;

comment on function jobq_private.limits_for is
'The limits that hold for jobs of a kind in a queue.';

-- Purpose: whether a text has a match of a schema's pattern.
-- Invariant: as RE2 does where clients and deliveries check the same schema: classes such as
-- \w are of ASCII, and a dot is no line break. Raises: nothing.
create or replace function jobq_private.matches_pattern(value text, pattern text)
returns boolean
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
    select matches_pattern.value collate "C" ~ case
        when matches_pattern.pattern !~ '\.' then matches_pattern.pattern
        else (
            select string_agg(case m[1] when '.' then '[^\n]' else m[1] end, '' order by n)
            from regexp_matches(
                matches_pattern.pattern, '\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*\]|.', 'g'
            ) with ordinality as t (m, n)
        )
    end
$$;

revoke all on function jobq_private.matches_pattern from public;

comment on function jobq_private.matches_pattern is
'Says whether a text has a match of a schema''s pattern.';

-- Purpose: once a kind or queue says something that enqueue() goes by, that looks for it.
-- Invariant: written down with the first that does, in one commit, whoever writes the row; by
-- maintain() where triggers were disabled.
-- Raises: nothing.
create or replace function jobq_private.note_rules()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (
        case tg_table_name
            when 'kind' then jobq_private.has_kind_rules()
            else jobq_private.has_queue_rules()
        end
    )
    then
        perform jobq_private.write_constants();
    end if;
    return null;
end
$$;

revoke all on function jobq_private.note_rules from public;

comment on function jobq_private.note_rules is
'Notes that a kind or queue says something that enqueue() goes by.';

create or replace trigger kind_rules
after insert or update on jobq_private.kind
for each row execute function jobq_private.note_rules();

alter table jobq_private.kind enable always trigger kind_rules;

create or replace trigger queue_rules
after insert or update on jobq_private.queue
for each row execute function jobq_private.note_rules();

alter table jobq_private.queue enable always trigger queue_rules;

-- Purpose: what is wrong with the members of a JSON object under a schema, or null.
-- Invariant: the half of schema_violation() that descends into objects. Raises: nothing.
create or replace function jobq_private.object_violation(
    schema jsonb, value jsonb, path text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _key text;
    _found text;
begin
    for _key in
        select r.key from jsonb_array_elements_text(schema -> 'required') as r (key)
    loop
        if not value ? _key then
            return format('%s.%s is missing', path, _key);
        end if;
    end loop;
    for _key in
        select k.key from jsonb_object_keys(value) as k (key)
    loop
        if schema -> 'properties' ? _key then
            _found := jobq_private.schema_violation(
                schema -> 'properties' -> _key, value -> _key, format('%s.%s', path, _key)
            );
            if _found is not null then
                return _found;
            end if;
        elsif schema -> 'additionalProperties' = 'false' then
            return format('%s.%s is not known', path, _key);
        end if;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.object_violation from public;

comment on function jobq_private.object_violation is
'Says what is wrong with the members of a JSON object under a schema, or null.';

-- Purpose: why a pattern cannot be used, or null when it can: it must be one that is matched
-- in a time linear in the text.
-- Invariant: what PostgreSQL matches by backtracking (back references) or anew from each place
-- (lookarounds) is refused, as RE2 does, and repeats that multiply, since the time for each
-- character grows with what they unfold to; comments and flavours could hide either.
-- What is left runs on an automaton. Raises: nothing.
create or replace function jobq_private.pattern_problem(pattern text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Without escaped characters but digits, and without what stands in brackets.
    _bare constant text := regexp_replace(
        regexp_replace(pattern_problem.pattern, '\\[^0-9]', 'x', 'g'),
        '\[\^?\]?[^]]*\]', 'x', 'g'
    );
    _unfolded numeric;
begin
    if length(pattern_problem.pattern) > 1000 then
        return 'longer than 1000 characters';
    elsif pattern_problem.pattern ~ '^\*\*\*|\(\?#|^\(\?[a-z]*[^imnpst:=!<)]' then
        return 'comments, literal texts and other flavours of patterns are not known';
    elsif _bare ~ '\\[1-9]' then
        return 'back references are not matched in linear time';
    elsif _bare ~ '\(\?<?[=!]' then
        return 'lookarounds are not matched in linear time';
    end if;
    select
        coalesce(exp(sum(ln(greatest(1, r.times))) filter (where r.is_group)), 1)
        * coalesce(max(r.times) filter (where not r.is_group), 1)
    into _unfolded
    from (
        select
            m[1] <> '' as is_group,
            greatest(m[2]::numeric, nullif(m[3], '')::numeric) as times
        from regexp_matches(_bare, '(\)?)\{(\d{1,9})(?:,(\d{0,9}))?\}', 'g') as m
    ) as r;
    if _unfolded > 256.5 then
        return 'its repeats multiply to more than 256';
    end if;
    perform '' ~ pattern_problem.pattern;
    return null;
exception
    when invalid_regular_expression then
        return sqlerrm;
end
$$;

revoke all on function jobq_private.pattern_problem from public;

comment on function jobq_private.pattern_problem is
'Says why a pattern cannot be used, or null: it must be matched in linear time.';

-- Purpose: turn a violated constraint of a definition into a typed error.
-- Invariant: always raises, in the words of the constraint's comment; called from an exception
-- handler. No constraint is violated by a priority that its column cannot hold. Raises: 22023.
create or replace function jobq_private.refuse_setting(relation regclass, violated text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('INVALID_ARGUMENT', coalesce(
        (
            select obj_description(c.oid, 'pg_constraint')
            from pg_catalog.pg_constraint as c
            where c.conrelid = relation and c.conname = violated
        ),
        'priority must be from -32768 to 32767'
    ));
end
$$;

revoke all on function jobq_private.refuse_setting from public;

comment on function jobq_private.refuse_setting is
'Raises which rule of a definition was violated.';

-- Purpose: how a failed job of a kind in a queue is tried again: a delivery as its endpoint
-- said when the job was made; else the kind's word, else the queue's, else the default.
-- Invariant: one row; beside settings_for(), so that enqueues do not pay for it. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.retry_policy_for(
    kind text, queue text, delivery_version integer
)
returns setof jobq_private.retry_policy
language sql
stable
parallel safe
security invoker
rows 1
as $$
    select
        coalesce(v.retry ->> 'strategy', k.retry_strategy, p.strategy),
        coalesce(
            (v.retry ->> 'initial_delay')::interval, k.retry_initial_delay, p.initial_delay
        ),
        coalesce((v.retry ->> 'max_delay')::interval, k.retry_max_delay, p.max_delay),
        coalesce((v.retry ->> 'jitter')::double precision, k.retry_jitter, p.jitter)
    from jobq_private.setting as g
    left join jobq_private.kind as k on k.kind = retry_policy_for.kind
    left join jobq_private.queue as q
        on q.queue = coalesce(retry_policy_for.queue, k.queue, 'default')
    join jobq_private.retry_preset as p
        on p.retry_preset = coalesce(k.retry_preset, q.retry_preset, g.retry_preset)
    left join lateral (
        select d.document -> 'retry' as retry
        from jobq_private.definition_version as d
        where retry_policy_for.delivery_version is not null
        and d.type = 'delivery'
        and d.name = retry_policy_for.kind
        and d.version = retry_policy_for.delivery_version
    ) as v on true
$$;

revoke all on function jobq_private.retry_policy_for from public;

comment on function jobq_private.retry_policy_for is
'Resolves how a failed job is tried again: its delivery, else kind, else queue, else global default.';

-- Purpose: why a payload schema cannot be used, or null when it can.
-- Invariant: admits the JSON Schema keywords that schema_violation() enforces and, as
-- notes, title, description, examples and default; every other keyword is refused, so
-- that no rule is stored and then ignored. Raises: nothing.
create or replace function jobq_private.schema_problem(schema jsonb, path text)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _known constant jsonb := '{
        "type": ["string", "array"], "required": ["array"], "properties": ["object"],
        "additionalProperties": ["boolean"], "items": ["object"], "enum": ["array"],
        "minimum": ["number"], "maximum": ["number"], "minLength": ["number"],
        "maxLength": ["number"], "pattern": ["string"], "title": ["string"],
        "description": ["string"], "$schema": ["string"], "examples": ["array"],
        "default": ["string", "number", "boolean", "object", "array", "null"]
    }';
    _types constant jsonb :=
        '["object", "array", "string", "number", "integer", "boolean", "null"]';
    _key text;
    _value jsonb;
    _found text;
begin
    if jsonb_typeof(schema) <> 'object' then
        return format('%s must be an object', path);
    end if;
    for _key, _value in
        select e.key, e.value from jsonb_each(schema) as e
    loop
        if not coalesce(_known -> _key @> to_jsonb(jsonb_typeof(_value)), false) then
            return format('%s.%s: known are %s', path, _key,
                (select string_agg(k.key, ', ') from jsonb_object_keys(_known) as k (key)));
        elsif _key = 'type' and not _types @> _value then
            return format('%s.type must be among %s', path, _types);
        elsif _key in ('minLength', 'maxLength') and _value::text !~ '^[0-9]{1,9}$' then
            return format('%s.%s must be a whole number', path, _key);
        elsif _key = 'enum' and jsonb_array_length(_value) > 1000 then
            return format('%s.enum must have at most 1000 values', path);
        elsif _key = 'required' and _value @? '$[*] ? (@.type() != "string")' then
            return format('%s.required must hold names', path);
        elsif _key = 'pattern' then
            _found := path || '.pattern: ' || jobq_private.pattern_problem(_value #>> '{}');
        elsif _key = 'items' then
            _found := jobq_private.schema_problem(_value, format('%s.items', path));
        elsif _key = 'properties' then
            select f.problem into _found
            from jsonb_each(_value) as p
            cross join lateral (
                select jobq_private.schema_problem(p.value, format('%s.%s', path, p.key))
                offset 0
            ) as f (problem)
            where f.problem is not null
            limit 1;
        end if;
        if _found is not null then
            return _found;
        end if;
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.schema_problem from public;

comment on function jobq_private.schema_problem is
'Says why a payload schema cannot be used, or null.';

-- Purpose: keep the schema of a kind's payloads where it can be enforced: by
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, for clients
-- and for deliveries.
-- Invariant: one of the two at most; \b, \B and options mean other things to
-- PostgreSQL than to clients. Raises: nothing.
create or replace function jobq_private.set_payload_schema(kind text, schema jsonb)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    _is_plain constant boolean :=
        jobq_private.schema_problem(set_payload_schema.schema, '') is null
        and not set_payload_schema.schema @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
begin
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then set_payload_schema.schema end,
        json_schema = case when not _is_plain then set_payload_schema.schema end
    where k.kind = set_payload_schema.kind;
end
$$;

revoke all on function jobq_private.set_payload_schema from public;

comment on function jobq_private.set_payload_schema is
'Keeps the schema of a kind''s payloads where it can be enforced.';

-- Purpose: have defaults() say what setting says, whoever changes it; maintain() does where triggers
-- were disabled.
-- Invariant: in the same transaction; always, so also for a row that a subscription brings.
-- Raises: nothing.
create or replace function jobq_private.setting_changed()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.write_constants();
    return null;
end
$$;

revoke all on function jobq_private.setting_changed from public;

comment on function jobq_private.setting_changed is
'Has defaults() say what the table of global defaults says.';

create or replace trigger setting_change
after insert or update on jobq_private.setting
for each row execute function jobq_private.setting_changed();

alter table jobq_private.setting enable always trigger setting_change;

-- Purpose: change global defaults; null leaves a default as it is.
-- Invariant: one row. Jobs that exist keep what they were made with. Raises: 22023.
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
volatile
parallel unsafe
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
        perform jobq_private.refuse_setting('jobq_private.setting', _violated);
end
$$;

revoke all on function jobq.configure from public;
grant execute on function jobq.configure to jobq_operator;

comment on function jobq.configure is
'Changes global defaults; arguments left out keep theirs.';

-- Purpose: forget what was declared of a kind.
-- Invariant: refused while live jobs or schedules of the kind exist, and for an endpoint, which
-- delete_definition() deletes. A job that another transaction adds meanwhile is not seen, since
-- an enqueue locks nothing of its kind: it waits for the kind to be declared anew.
-- Raises: 22004, JQ004, JQ007, JQ008.
-- Example: select jobq.delete_kind('send_email_v1');
create or replace function jobq.delete_kind(kind text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if delete_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif exists (
        select from jobq_private.endpoint as e where e.endpoint = delete_kind.kind
    ) then
        perform jobq_private.raise_error('IS_ENDPOINT', format('kind %s', delete_kind.kind));
    end if;
    perform jobq_private.forget_kind(delete_kind.kind);
    perform jobq_private.record_audit('delete_kind', delete_kind.kind);
end
$$;

revoke all on function jobq.delete_kind from public;
grant execute on function jobq.delete_kind to jobq_operator;

comment on function jobq.delete_kind is
'Forgets what was declared of a kind; refused while live jobs or schedules of it exist.';

-- Purpose: forget what was declared of a queue.
-- Invariant: refused while live jobs or schedules of the queue exist, in their graphs too.
-- Raises: 22004, JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if delete_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    elsif exists (
        select from jobq_private.job as j where j.queue = delete_queue.queue
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of queue %s', delete_queue.queue
        ));
    elsif exists (
        select from jobq_private.schedule as s
        where (
            s.queue = delete_queue.queue or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object('queue', delete_queue.queue)]
            )
        )
        and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of queue %s', delete_queue.queue
        ));
    end if;
    delete from jobq_private.queue as d where d.queue = delete_queue.queue;
    if not found then
        perform jobq_private.raise_error('QUEUE_NOT_FOUND', format(
            'queue %s', delete_queue.queue
        ));
    end if;
    perform jobq_private.record_audit('delete_queue', delete_queue.queue);
end
$$;

revoke all on function jobq.delete_queue from public;
grant execute on function jobq.delete_queue to jobq_operator;

comment on function jobq.delete_queue is
'Forgets what was declared of a queue; refused while live jobs or schedules of it exist.';

-- Purpose: the kinds that are declared, and what each says; null where the queue or the
-- default speaks.
-- Invariant: reads only. Raises: nothing.
-- Column queue: the queue of its jobs where the call names none.
-- Column dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Column dedup_period: how long a job waits for another call (debounce), or how long a key makes no
-- other job (throttle).
-- Column dedup_max_wait: how long other calls may put a job off in all.
-- Column concurrency_key: the path in the payload at which each job's concurrency key stands.
-- Column key_max_running: how many of its jobs of each concurrency key run at once, in all queues.
-- Column key_rate_limit: how many of its jobs of each key start in each key_rate_period, in all
-- queues.
-- Column ordered: whether its jobs of each key run one at a time, in their order.
-- Column on_dead: whether a key goes on when a job of an ordered kind is dead: continue, or hold.
-- Column keep_succeeded: how long its jobs are kept that succeeded; 0 leaves no trace.
-- Column keep_dead: the same for dead jobs.
-- Column keep_cancelled: the same for cancelled jobs.
-- Column run: the function that work() calls for a job; null where workers have a handler.
-- Column retry_on: after which errors of run a job is tried again, by SQLSTATE or class.
-- Column is_endpoint: whether its jobs are delivered to an endpoint.
-- Column payload_schema: the JSON Schema that payloads must fit.
-- Column version: of the program that declared it; null where that says none.
-- Column updated_at: when it was declared.
-- Returns: a row for each kind, by name.
-- Example: select kind, queue, timeout from jobq.list_kinds();
create or replace function jobq.list_kinds()
returns table (
    kind text,
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    retry_strategy text,
    retry_initial_delay interval,
    retry_max_delay interval,
    retry_jitter double precision,
    dedup text,
    dedup_period interval,
    dedup_max_wait interval,
    reuse_key_after_failure boolean,
    concurrency_key text[],
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    key_max_running integer,
    key_rate_limit integer,
    key_rate_period interval,
    key_rate_burst integer,
    ordered boolean,
    on_dead text,
    keep_succeeded interval,
    keep_dead interval,
    keep_cancelled interval,
    run text,
    retry_on text[],
    is_endpoint boolean,
    payload_schema jsonb,
    version bigint,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        k.kind, k.queue, k.priority::integer, k.max_attempts, k.timeout, k.lease, k.retry_preset,
        k.retry_strategy, k.retry_initial_delay, k.retry_max_delay, k.retry_jitter,
        k.dedup, k.dedup_period, k.dedup_max_wait, k.reuse_key_after_failure,
        k.concurrency_key, k.max_running, k.rate_limit, k.rate_period, k.rate_burst,
        k.key_max_running, k.key_rate_limit, k.key_rate_period, k.key_rate_burst,
        k.ordered, k.on_dead, k.keep[1], k.keep[2], k.keep[3], k.run, k.retry_on,
        exists (select from jobq_private.endpoint as e where e.endpoint = k.kind),
        coalesce(k.json_schema, k.payload_schema), k.version, k.updated_at
    from jobq_private.kind as k
    order by k.kind
$$;

revoke all on function jobq.list_kinds from public;
grant execute on function jobq.list_kinds to jobq_operator, jobq_reader;

comment on function jobq.list_kinds is
'Lists the kinds that are declared, with what each says.';

-- Purpose: the JSON Schemas of kinds that a client should check payloads against: those
-- that the database cannot enforce by itself.
-- Invariant: kinds without one have no row. Raises: nothing.
-- Column schema: the JSON Schema; kinds without one have no row.
-- Example: select * from jobq.list_payload_schemas('{send_email}');
create or replace function jobq.list_payload_schemas(kinds text[])
returns table (kind text, schema jsonb)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select k.kind, k.json_schema
    from jobq_private.kind as k
    where k.kind = any(list_payload_schemas.kinds) and k.json_schema is not null;
end
$$;

revoke all on function jobq.list_payload_schemas from public;
grant execute on function jobq.list_payload_schemas to jobq_producer, jobq_operator;

comment on function jobq.list_payload_schemas is
'Returns the JSON Schemas of kinds that clients check payloads against, since the database cannot.';

-- Purpose: the queues that are declared, and what each says; null where the default speaks.
-- Invariant: reads only; queue_stats() tells how each stands. Raises: nothing.
-- Column ordered: whether the jobs of each concurrency key run one at a time, in their order.
-- Column on_dead: whether a key goes on when a job of an ordered queue is dead: continue, or hold.
-- Column pause_reason: why it is paused, as the caller said.
-- Column updated_at: when it was declared, paused or resumed.
-- Returns: a row for each queue, by name.
-- Example: select queue, max_depth from jobq.list_queues();
create or replace function jobq.list_queues()
returns table (
    queue text,
    priority integer,
    max_attempts integer,
    timeout interval,
    lease interval,
    retry_preset text,
    max_depth integer,
    max_running integer,
    rate_limit integer,
    rate_period interval,
    rate_burst integer,
    key_max_running integer,
    key_rate_limit integer,
    key_rate_period interval,
    key_rate_burst integer,
    ordered boolean,
    on_dead text,
    paused_at timestamptz,
    pause_reason text,
    updated_at timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        q.queue, q.priority::integer, q.max_attempts, q.timeout, q.lease, q.retry_preset,
        q.max_depth, q.max_running, q.rate_limit, q.rate_period, q.rate_burst,
        q.key_max_running, q.key_rate_limit, q.key_rate_period, q.key_rate_burst, q.ordered,
        q.on_dead, q.paused_at, q.pause_reason, q.updated_at
    from jobq_private.queue as q
    order by q.queue
$$;

revoke all on function jobq.list_queues from public;
grant execute on function jobq.list_queues to jobq_operator, jobq_reader;

comment on function jobq.list_queues is
'Lists the queues that are declared, with what each says.';

-- Purpose: of some kinds, those that a program has to declare: nothing is declared of them, or
-- only by an older version of it.
-- Invariant: reads by the primary key. Raises: nothing.
-- Argument version: of the program, as put_kind() has it; null counts only what nobody has declared.
-- Returns: the kinds, by name.
-- Example: select * from jobq.list_undeclared_kinds('{send_email,resize}', 12);
create or replace function jobq.list_undeclared_kinds(
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

revoke all on function jobq.list_undeclared_kinds from public;
grant execute on function jobq.list_undeclared_kinds
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.list_undeclared_kinds is
'Lists which of these kinds nobody has declared, or only an older version of the program.';

-- Purpose: stop claims from a queue; what runs goes on, and enqueueing too.
-- Invariant: declares the queue when nobody has. Raises: 22004, 22023.
-- Example: select jobq.pause_queue('mail', 'the provider is down');
create or replace function jobq.pause_queue(queue text, reason text default null)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    elsif length(pause_queue.queue) not between 1 and 128 or pause_queue.queue = '*' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters, and be one queue, not *'
        );
    elsif not exists (select from jobq_private.queue as q where q.queue = pause_queue.queue)
    then
        raise notice using
            message = 'this queue was not declared; it is now, and paused',
            detail = format('queue %s', pause_queue.queue);
    end if;
    insert into jobq_private.queue as q (queue, paused_at, pause_reason)
    values (pause_queue.queue, now(), pause_queue.reason)
    on conflict on constraint queue_pkey do update
    set
        paused_at = coalesce(q.paused_at, now()),
        pause_reason = coalesce(excluded.pause_reason, q.pause_reason),
        updated_at = now();
end
$$;

revoke all on function jobq.pause_queue from public;
grant execute on function jobq.pause_queue to jobq_operator;

comment on function jobq.pause_queue is
'Stops claims from a queue; running jobs go on.';

-- Purpose: declare a kind of job, or replace what is declared of it; null means the
-- queue's setting, else the global default.
-- Invariant: one row, last writer wins, but with a version the newest; jobs that exist keep what
-- they were made with, but for the backoff. An endpoint is declared by put_endpoint() alone: the
-- row is written first, so that one which comes at the same time is seen.
-- Raises: 22004, 22023, 42501, JQ004, JQ006, JQ007.
-- Argument queue: the queue of its jobs where the call names none.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue, replace, debounce or
-- throttle.
-- Argument dedup_period: how long a job waits for another call (debounce), or how long a key makes no
-- other job (throttle); null means 10 s.
-- Argument dedup_max_wait: how long other calls may put a job off in all; null means for ever.
-- Argument concurrency_key: the path in the payload at which each job's concurrency key stands,
-- such as {customer_id}; a path that names nothing means no key.
-- Argument payload_schema: a JSON Schema that payloads must fit, of the keywords type,
-- required, properties, additionalProperties, items, enum (of 1000 values at most), minimum,
-- maximum, minLength, maxLength and pattern.
-- Argument key_max_running: how many of its jobs of each concurrency key run at once, in all queues, 1
-- to 32767; null means no limit.
-- Argument key_rate_limit: how many of its jobs of each key start in each key_rate_period, in all
-- queues; null means no limit.
-- Argument ordered: whether its jobs of each key run one at a time, and those behind one that is tried
-- again wait for it; between queues there is no order but that.
-- Argument on_dead: whether a key goes on when a job of an ordered kind is dead: continue, or hold
-- in its queue, until it is redriven or release_key() is called.
-- Argument run: a function, f(jsonb) returns jsonb, that work() calls for a job of this kind;
-- with its schema. One that is f(jsonb[]) returns jsonb[] is called for many jobs at a time, and
-- returns a result for each in their order. null means that workers have a handler.
-- Argument retry_on: after which errors of run a job is tried again: SQLSTATEs, or their classes
-- by two characters; null means {08,40,53,55,57}.
-- Argument keep_succeeded: how long its jobs are kept that succeeded, at most the global
-- retention, which null means. With 0 they leave no trace: neither job nor result, log and
-- failed attempts are kept.
-- Argument keep_dead: the same for dead jobs; at least 1 hour.
-- Argument keep_cancelled: the same for cancelled jobs; at least 1 hour.
-- Argument version: of the program that declares, a number that grows; nothing is changed where
-- the kind was declared by this version or a newer one. null replaces what any of them has declared, and
-- leaves the version, so that only a newer one undoes it.
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
    version bigint default null
)
returns void
language plpgsql
volatile
parallel unsafe
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
    _problem := coalesce(
        jobq_private.definition_problem(put_kind.payload_schema),
        jobq_private.schema_problem(put_kind.payload_schema, 'schema')
    );
    if put_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif _problem is not null then
        perform jobq_private.raise_error('SCHEMA_INVALID', _problem);
    end if;
    if exists (
        select from unnest(_keep) as k (keep), jobq_private.setting as g
        where k.keep > g.retention
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobs are kept no longer than the global retention'
        );
    end if;
    if put_kind.run is not null then
        perform jobq_private.check_sql_function(put_kind.run);
    end if;
    insert into jobq_private.kind as k (
        kind, queue, priority, max_attempts, timeout, lease, retry_preset, retry_strategy,
        retry_initial_delay, retry_max_delay, retry_jitter, dedup, reuse_key_after_failure,
        payload_schema, run, concurrency_key,
        max_running, rate_limit, rate_period, rate_burst, dedup_period, dedup_max_wait,
        keep, retry_on, key_max_running, key_rate_limit, key_rate_period, key_rate_burst,
        ordered, on_dead, version
    )
    values (
        put_kind.kind, put_kind.queue, put_kind.priority, put_kind.max_attempts,
        put_kind.timeout, put_kind.lease, put_kind.retry_preset, put_kind.retry_strategy,
        put_kind.retry_initial_delay, put_kind.retry_max_delay, put_kind.retry_jitter,
        put_kind.dedup, put_kind.reuse_key_after_failure, put_kind.payload_schema,
        put_kind.run, put_kind.concurrency_key,
        put_kind.max_running, put_kind.rate_limit, put_kind.rate_period,
        put_kind.rate_burst,
        put_kind.dedup_period, put_kind.dedup_max_wait,
        case when num_nonnulls(variadic _keep) > 0 then _keep end, put_kind.retry_on,
        put_kind.key_max_running, put_kind.key_rate_limit, put_kind.key_rate_period,
        put_kind.key_rate_burst, put_kind.ordered, put_kind.on_dead,
        put_kind.version
    )
    on conflict on constraint kind_pkey do update
    set
        queue = excluded.queue, priority = excluded.priority,
        max_attempts = excluded.max_attempts, timeout = excluded.timeout,
        lease = excluded.lease, retry_preset = excluded.retry_preset,
        retry_strategy = excluded.retry_strategy,
        retry_initial_delay = excluded.retry_initial_delay,
        retry_max_delay = excluded.retry_max_delay, retry_jitter = excluded.retry_jitter,
        dedup = excluded.dedup, reuse_key_after_failure = excluded.reuse_key_after_failure,
        payload_schema = excluded.payload_schema, run = excluded.run,
        concurrency_key = excluded.concurrency_key,
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        dedup_period = excluded.dedup_period, dedup_max_wait = excluded.dedup_max_wait,
        keep = excluded.keep, retry_on = excluded.retry_on,
        key_max_running = excluded.key_max_running,
        key_rate_limit = excluded.key_rate_limit,
        key_rate_period = excluded.key_rate_period,
        key_rate_burst = excluded.key_rate_burst, ordered = excluded.ordered,
        on_dead = excluded.on_dead,
        version = coalesce(excluded.version, k.version), updated_at = now()
    where excluded.version is null or k.version is null or excluded.version > k.version;
    if found and exists (
        select from jobq_private.endpoint as e where e.endpoint = put_kind.kind
    ) then
        perform jobq_private.raise_error('IS_ENDPOINT', format('kind %s', put_kind.kind));
    end if;
    perform jobq_private.audit_settings('put_kind', put_kind.kind, _before, (
        select to_jsonb(k) - 'kind' from jobq_private.kind as k where k.kind = put_kind.kind
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _problem = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.kind', _problem);
end
$$;

revoke all on function jobq.put_kind from public;
grant execute on function jobq.put_kind to jobq_operator, jobq_worker;

comment on function jobq.put_kind is
'Declares a kind of job: its queue, limits, retries, dedup, retention and the schema of its payload.';

-- Purpose: declare a queue, or replace what is declared of it; null means the default.
-- Invariant: one row, last writer wins; a pause is left as it is. Raises: 22004, 22023.
-- Argument ordered: whether the jobs of each concurrency key run one at a time, and those behind one
-- that is tried again wait for it.
-- Argument on_dead: whether the key of an ordered queue goes on when a job of its is dead: continue,
-- or hold, until it is redriven or release_key() is called.
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
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _before constant jsonb := (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    );
    _violated text;
begin
    if put_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    end if;
    insert into jobq_private.queue as q (
        queue, priority, max_attempts, timeout, lease, retry_preset, max_depth,
        max_running, rate_limit, rate_period, rate_burst, key_max_running,
        key_rate_limit, key_rate_period, key_rate_burst, ordered, on_dead
    )
    values (
        put_queue.queue, put_queue.priority, put_queue.max_attempts, put_queue.timeout,
        put_queue.lease, put_queue.retry_preset, put_queue.max_depth,
        put_queue.max_running, put_queue.rate_limit, put_queue.rate_period,
        put_queue.rate_burst, put_queue.key_max_running, put_queue.key_rate_limit,
        put_queue.key_rate_period, put_queue.key_rate_burst, put_queue.ordered,
        put_queue.on_dead
    )
    on conflict on constraint queue_pkey do update
    set
        priority = excluded.priority, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, lease = excluded.lease,
        retry_preset = excluded.retry_preset, max_depth = excluded.max_depth,
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        key_max_running = excluded.key_max_running,
        key_rate_limit = excluded.key_rate_limit,
        key_rate_period = excluded.key_rate_period,
        key_rate_burst = excluded.key_rate_burst, ordered = excluded.ordered,
        on_dead = excluded.on_dead, updated_at = now();
    perform jobq_private.audit_settings('put_queue', put_queue.queue, _before, (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.queue', _violated);
end
$$;

revoke all on function jobq.put_queue from public;
grant execute on function jobq.put_queue to jobq_operator;

comment on function jobq.put_queue is
'Declares a queue: what holds for its jobs in place of the global defaults.';

-- Purpose: allow claims from a paused queue again, and wake its workers.
-- Invariant: resuming a queue that is not paused changes nothing. Raises: 22004, JQ007.
-- Example: select jobq.resume_queue('mail');
create or replace function jobq.resume_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if resume_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    end if;
    update jobq_private.queue as q
    set paused_at = null, pause_reason = null, updated_at = now()
    where q.queue = resume_queue.queue;
    if not found then
        perform jobq_private.raise_error(
            'QUEUE_NOT_FOUND', format('queue %s', resume_queue.queue)
        );
    end if;
    perform jobq_private.wake(array[resume_queue.queue]);
end
$$;

revoke all on function jobq.resume_queue from public;
grant execute on function jobq.resume_queue to jobq_operator;

comment on function jobq.resume_queue is
'Allows claims from a paused queue again.';

-- Purpose: show what would hold for a job of this kind in this queue.
-- Invariant: the same resolution that enqueue() uses. Its plan is priced so high that
-- PostgreSQL would compile it, for a second, before 18. Raises: nothing.
-- Argument kind: the kind; null means one that nobody has declared.
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
set jit = off
as $$
    select to_jsonb(s) - '{delivery_version,is_limited,keep}'::text[] || to_jsonb(r)
    || jobq_private.limits_for(settings.kind, s.queue) || jsonb_build_object(
        'max_expiries', g.max_expiries, 'retention', g.retention,
        'keep_succeeded', least(s.keep[1], g.retention),
        'keep_dead', least(s.keep[2], g.retention),
        'keep_cancelled', least(s.keep[3], g.retention),
        'key_retention', g.key_retention, 'redact_emails', g.redact_emails,
        'run', (select k.run from jobq_private.kind as k where k.kind = settings.kind)
    )
    from jobq_private.settings_for(kind, queue) as s
    cross join jobq_private.retry_policy_for(kind, queue, s.delivery_version) as r
    cross join jobq_private.setting as g
$$;

revoke all on function jobq.settings from public;
grant execute on function jobq.settings
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.settings is
'Shows what holds for a job of this kind in this queue: kind, else queue, else default.';

commit;
