-- Deploy jobq:shard to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: change the number in the ids of this database.
-- Invariant: refused if jobs exist, because their ids contain the old number. A router
-- has put_shard(), but neither this nor jobs. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void
language plpgsql
as $$
begin
    perform jobq_private.check_argument((
        select 'this database has jobs or schedules, so its number cannot be changed: ' || g.shard_id
        from jobq_private.setting as g
        where exists (select from jobq_private.job)
        or exists (select from jobq_private.job_archive)
        or exists (select from jobq_private.schedule)
    ));
    update jobq_private.setting as g set shard_id = become_shard.shard_id;
end
$$;

-- Purpose: how a router calls each public function: its arguments, its result and its
-- route. A function without a route is refused.
-- Column inputs: the types of the arguments.
-- Column outputs: the names and types of the result columns, if there are several.
-- Column answer: void, set, record (the columns are parameters) or value.
create or replace view jobq_private.routed_function as
select
    p.oid::regprocedure as signature, p.pronamespace::regnamespace::text as schema,
    p.proname::text as name,
    coalesce(r.class, 'refused') as class,
    coalesce(r.detail, 'it has no route') as detail,
    pg_get_function_arguments(p.oid) as arguments,
    pg_get_function_result(p.oid) as result,
    array(
        select format_type(i.type_oid, null)
        from unnest(p.proargtypes) with ordinality as i (type_oid, n)
        order by i.n
    ) as inputs,
    array(
        select quote_ident(a.name)
        from unnest(p.proargnames, p.proallargtypes, p.proargmodes)
            with ordinality as a (name, type_oid, mode, n)
        where a.mode in ('o', 't')
        order by a.n
    ) as outputs,
    array(
        select quote_ident(a.name) || ' ' || format_type(a.type_oid, null)
        from unnest(p.proargnames, p.proallargtypes, p.proargmodes)
            with ordinality as a (name, type_oid, mode, n)
        where a.mode in ('o', 't')
        order by a.n
    ) as output_columns,
    case
        when p.prorettype = 'void'::regtype then 'void'
        when p.proretset then 'set'
        when p.prorettype = 'record'::regtype then 'record'
        else 'value'
    end as answer,
    case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end
    as volatility
from pg_proc as p
left join jobq_private.route as r on r.function_name = p.proname
where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
and p.prorettype <> 'trigger'::regtype;

comment on view jobq_private.routed_function is 'how a router calls each public function: its arguments, its result and its route. A function without a route is refused.';

-- Purpose: the statement with which a router's function returns what a call on the
-- shards answers, merged if several answer.
create or replace function jobq_private.router_answer(called jobq_private.routed_function, call text)
returns text
language sql
stable
as $$
    select replace(case
        when called.answer = 'void' then format('perform * from %s;', call)
        when called.class = 'every' then format(
            'return (select %s from %s as a);',
            case called.result
                when 'boolean' then 'bool_or(a)'
                when 'bigint' then 'sum(a)::bigint'
                else '(array_agg(a))[1]'
            end, call
        )
        when called.class in ('all', 'lists') then replace(
            case called.answer
                when 'set' then 'return query with answers as (select * from <call>) <merge>;'
                else 'return (with answers as (select * from <call>) <merge>);'
            end, '<call>', call
        )
        when called.answer = 'set' then format('return query select * from %s;', call)
        when called.answer = 'record' then format(
            'select * from %s into %s;', call, array_to_string(called.outputs, ', ')
        )
        else format('return %s;', call)
    end, '<merge>', coalesce(nullif(called.detail, ''), 'select * from answers'))
$$;

-- Purpose: the statements of a router's function: they find the shard and call the
-- function there, as its class says.
-- Never: ONE_DATABASE.
create or replace function jobq_private.router_body(called jobq_private.routed_function)
returns text
language sql
stable
as $$
    select case called.class
        when 'jobs' then format(
            'return query select coalesce(p.places[a.ordinal], a.ordinal), a.job_id, a.created '
            'from jobq_router.parts_of_jobs(%1$I) as p '
            'cross join lateral jobq_router.%2$I(p.partition, p.part) as a order by 1;',
            called.detail, called.name
        )
        when 'refused' then format(
            'perform jobq_private.raise_error(''ONE_DATABASE'', %L);',
            called.name || ': ' || called.detail
        )
        when 'split' then format(
            'return query select %s from jobq_router.parts_of_list(%s, array[%s]) as p '
            'cross join lateral jobq_router.%I(p.partition%s) with ordinality as a '
            'order by coalesce(p.places[a.ordinality::integer], a.ordinality);',
            g.columns,
            case called.detail when 'failures' then 'jobq_router.ids_of($1)' else '$1' end,
            g.sizes, called.name, g.picked
        )
        when 'some' then format(
            'for _partition, _ids in select * from jobq_router.parts_of(job_ids) loop '
            'exit when _count >= %1$I; '
            'return query select * from jobq_router.%2$I(_partition%3$s); '
            'get diagnostics _found = row_count; _count := _count + _found; end loop;',
            called.detail, called.name, g.rest
        )
        else jobq_private.router_answer(called, format('jobq_router.%I(%s)', called.name, case
            when p.place is null then substr(g.given, 3) else '_partition' || g.given
        end))
    end
    from (
        select
            coalesce(string_agg(', $' || i.n, '' order by i.n), '') as given,
            string_agg(
                format(case when i.is_list then ', jobq_router.pick($%s, p.places)' else ', $%s' end, i.n),
                '' order by i.n
            ) as picked,
            string_agg(format('jobq_router.size($%s)', i.n), ', ' order by i.n)
                filter (where i.is_list) as sizes,
            string_agg(', ' || case n.name
                when 'job_ids' then '_ids'
                when called.detail then n.name || ' - _count'
                else '$' || i.n
            end, '' order by i.n) as rest,
            (select string_agg('a.' || o.name, ', ') from unnest(called.outputs) as o (name)) as columns
        from (
            select c.type, c.n, c.type = 'jsonb' or c.type like '%[]' as is_list
            from unnest(called.inputs) with ordinality as c (type, n)
        ) as i
        cross join lateral (
            select f.proargnames[i.n] from pg_proc as f where f.oid = called.signature
        ) as n (name)
    ) as g
    cross join lateral (select jobq_private.router_place(called)) as p (place)
$$;

-- Purpose: the PL/Proxy functions through which a router calls one function on its
-- shards.
-- Invariant: one line each: on the partition in the first argument, on all, or on those
-- that the first argument lists. A single value is selected without from, which saves
-- the shard a scan.
create or replace function jobq_private.router_calls(called jobq_private.routed_function)
returns table (statement text)
language sql
stable
as $$
    select format(
        'create function jobq_router.%I(%s) returns %s language plproxy as '
        '$plproxy$ cluster ''jobq''; %s; $plproxy$',
        called.name, array_to_string(w.first || c.types, ', '), c.result,
        replace(
            case
                when called.answer = 'value' and not exists (
                    select from pg_type as t
                    where t.oid = called.result::regtype and t.typtype = 'c'
                ) then replace(w.body, '* from <call>', '<call>')
                else w.body
            end, '<call>', format('%I.%I(%s)', called.schema, called.name, c.given)
        )
    )
    from (values
        ('one', '{integer}'::text[], 'run on $1; select * from <call>'),
        ('all', '{}', 'run on all; select * from <call>'),
        ('present', '{integer[]}', 'run on jobq_router.each_of($1); select * from <call>')
    ) as w (way, first, body)
    cross join lateral (
        select
            array_agg(case when i.is_text then 'text' else i.type end order by i.n) as types,
            string_agg(
                '$' || i.n + cardinality(w.first) || case when i.is_text then '::jsonb' else '' end,
                ', ' order by i.n
            ) as given,
            case
                when called.answer = 'set' then called.result
                when called.answer = 'record'
                then format('table (%s)', array_to_string(called.output_columns, ', '))
                when w.way = 'one' and called.answer = 'value' then called.result
                else 'setof ' || called.result
            end as result
        from (
            select g.type, g.n, called.class = 'jobs' and g.type = 'jsonb' as is_text
            from unnest(called.inputs) with ordinality as g (type, n)
        ) as i
    ) as c
    where case
        when called.class in ('own', 'refused') then false
        when called.class in ('every', 'all') then w.way = 'all'
        when called.class = 'lists' then w.way in ('all', 'present')
        else w.way = 'one'
    end
$$;

-- Purpose: the router's version of a public function: it finds the shard, calls the
-- function there, and raises the shard's errors unchanged. Its class chooses the
-- template.
-- Invariant: same names, types and defaults as on the shard. PL/pgSQL refuses a column
-- with the name of an argument; such a function becomes a wrapper in SQL.
create or replace function jobq_private.router_function(called jobq_private.routed_function)
returns text
language sql
stable
as $$
    select format(
        $template$create function %I.%I(%s) returns %s language plpgsql %s as $router$
#variable_conflict use_column
declare
    %s
    _detail text;
    _hint text;
begin
    %s
exception when others then
    get stacked diagnostics _detail = pg_exception_detail, _hint = pg_exception_hint;
    %sperform jobq_router.raise_remote(sqlstate, sqlerrm, _detail, _hint, %s);
end
$router$;
$template$ || case
            when called.arguments = n.arguments then ''
            else format(
                'create function %I.%I(%s) returns %s language sql %s as '
                '$router$ select * from jobq_router.%I(%s) $router$',
                called.schema, called.name, called.arguments, called.result, called.volatility,
                n.name, substr(g.given, 3)
            )
        end,
        n.schema, n.name, n.arguments, called.result, called.volatility,
        case
            when called.class = 'some' then '_partition integer; _ids uuid[]; _found integer; _count integer := 0;'
            when called.class = 'lists' then '_present integer[];'
            when w.place is not null then '_partition integer;'
            else ''
        end,
        coalesce('_partition := ' || w.place || '; ', '') || jobq_private.router_body(called),
        case when called.class = 'lists' then format(
            'if jobq_router.is_away(sqlstate, sqlerrm) then _present := jobq_router.responding_partitions(); end if; '
            'if _present is not null then %s return; end if; ',
            jobq_private.router_answer(called, format('jobq_router.%I(_present%s)', called.name, g.given))
        ) else '' end,
        case when w.place is not null then '_partition' else 'null' end
    )
    from (
        select coalesce(string_agg(', $' || i, '' order by i), '') as given
        from generate_series(1, cardinality(called.inputs)) as i
    ) as g
    cross join lateral (
        select
            case when d.is_doubled then 'jobq_router' else called.schema end as schema,
            case when d.is_doubled then called.name || '_named' else called.name end as name,
            case when d.is_doubled then array_to_string(called.inputs, ', ') else called.arguments end
            as arguments
        from (
            select count(*) > 0 as is_doubled
            from pg_proc as p
            cross join lateral unnest(p.proargnames[:p.pronargs]) as i (name)
            where p.oid = called.signature and quote_ident(i.name) = any(called.outputs)
        ) as d
    ) as n
    cross join lateral (select jobq_private.router_place(called)) as w (place)
$$;

-- Purpose: where a routed function runs if on one partition: an expression for the
-- router's function; null for classes that choose it otherwise.
create or replace function jobq_private.router_place(called jobq_private.routed_function)
returns text
language sql
stable
as $$
    select case called.class
        when 'key' then 'jobq_router.partition_of_new('
            'kind, concurrency_key, idempotency_key, dedup_key, after, batch_id)'
        when 'lot' then format(
            'coalesce(jobq_router.partition_of_id(%s), jobq_router.random_partition())',
            coalesce(nullif(called.detail, ''), 'null')
        )
        when 'id' then format(
            'coalesce(jobq_router.partition_of_id(%I), jobq_router.random_partition())', called.detail
        )
        when 'schedule' then format('jobq_router.partition_of_schedule(%I::text)', called.detail)
        when 'any' then 'jobq_router.responding_partition()'
    end
$$;

-- Purpose: Returns the shard for a new job, by its keys or by what it belongs to.
-- Invariant: related jobs share a shard: batch_id decides, else after, else the first
-- key that is given. The first 16 bits of its md5, modulo 16384, are its slot, and the
-- shard is the one with the greatest md5 of number, colon and slot. So an added shard
-- takes slots from all others, no other key moves, and a router needs only one md5 and
-- a table. md5 is the same in every version of PostgreSQL and every language. Without
-- any of these, the shard is random.
-- Raises: 22004.
-- Argument shard_ids: the shards that get new keys, in the order of the epoch.
-- Argument after: the jobs that the job waits for; the first one decides.
-- Argument batch_id: the batch that the job joins.
-- Returns: one of shard_ids, or the shard of the batch or of the awaited job.
-- Example: select jobq.choose_shard('{0, 1}', concurrency_key => 'customer-7');
create or replace function jobq.choose_shard(
    shard_ids integer[],
    concurrency_key text default null,
    idempotency_key text default null,
    dedup_key text default null,
    after uuid[] default null,
    batch_id uuid default null
)
returns integer
language plpgsql
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _key constant text := coalesce(
        choose_shard.concurrency_key, choose_shard.idempotency_key, choose_shard.dedup_key
    );
    _slot constant integer := ('x' || left(md5(_key), 4))::"bit"::integer & 16383;
begin
    perform jobq_private.check_given('shard_ids', num_nulls(nullif(shard_ids, '{}')));
    return coalesce(
        jobq_internal.shard_of(coalesce(choose_shard.batch_id, choose_shard.after[1])),
        case
            when _key is null
            then choose_shard.shard_ids[
                1 + floor(random() * cardinality(choose_shard.shard_ids))::integer
            ]
            when cardinality(choose_shard.shard_ids) = 1 then choose_shard.shard_ids[1]
            else (
                select s.shard_id
                from unnest(choose_shard.shard_ids) as s (shard_id)
                order by md5(s.shard_id || ':' || _slot) collate "C" desc
                limit 1
            )
        end
    );
end
$$;

grant execute on function jobq.choose_shard
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.choose_shard is 'Returns the shard for a new job, by its keys or by what it belongs to.';

-- Purpose: Forgets the contents of jobs that have arrived on another shard. Only for
-- jobq_owner.
-- Invariant: which shard has them stays recorded. Raises: 22004.
-- Returns: how many were not confirmed before.
-- Example: select jobq_internal.confirm_jobs('{}');
create or replace function jobq_internal.confirm_jobs(job_ids uuid[])
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _confirmed bigint;
begin
    perform jobq_private.check_given('job_ids', num_nulls(confirm_jobs.job_ids));
    update jobq_private.moved_job as m
    set job = null
    where m.job_id = any(confirm_jobs.job_ids) and m.shard_id is not null and m.job is not null;
    get diagnostics _confirmed = row_count;
    if _confirmed > 0 then
        perform jobq_private.record_audit('move', _confirmed || ' jobs');
    end if;
    return _confirmed;
end
$$;

comment on function jobq_internal.confirm_jobs is 'Forgets the contents of jobs that have arrived on another shard. Only for jobq_owner.';

-- Purpose: Lists definitions that must be the same on all shards, and schedules, which
-- are on one. Only for jobq_owner.
-- Invariant: reads only; contains checksums of secrets, not their values. Omits what
-- each database sets itself, such as times and version numbers. Raises: nothing.
-- Column type: map, interface (this version's functions), setting, retry_preset, kind, queue,
-- limit, payload_spec, config, secret, endpoint, queue_grant or schedule.
-- Column declaration: the declaration as JSON.
-- Example: select type, name from jobq_internal.list_declarations();
create or replace function jobq_internal.list_declarations()
returns table (type text, name text, declaration jsonb)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.type, d.name, d.declaration - array[
        'created_at', 'updated_at', 'paused_at', 'version', 'delivery_version', 'test_job_id',
        'ciphertext'
    ]
    from (
        select 'map', 'shards', jsonb_build_object('shards', (
            select jsonb_agg(s.shard_id order by s.shard_id) from jobq_private.shard as s
            where s.removed_at is null
        ))
        union all
        select 'map', 'epoch ' || e.epoch, jsonb_build_object('shards', e.shard_ids)
        from jobq_private.shard_epoch as e
        union all
        select
            'interface', 'functions',
            jsonb_build_object('checksum', md5(string_agg(s.statement, ';' order by s.ordinal)))
        from jobq_internal.list_router_statements() as s
        union all
        select 'setting', e.key, jsonb_build_object('value', e.value)
        from jobq_private.setting as s
        cross join lateral jsonb_each(to_jsonb(s) - 'shard_id') as e
        union all
        select 'retry_preset', r.retry_preset, to_jsonb(r) from jobq_private.retry_preset as r
        union all
        select 'kind', k.kind, to_jsonb(k) from jobq_private.kind as k
        union all
        select 'subscription', s.event || ' ' || s.kind, jsonb_build_object('queue', s.queue)
        from jobq_private.subscription as s
        union all
        select 'paused_kind', p.kind, to_jsonb(p) from jobq_private.paused_kind as p
        union all
        select
            'queue', q.queue,
            to_jsonb(q) || jsonb_build_object('is_paused', q.paused_at is not null)
        from jobq_private.queue as q
        union all
        select 'limit', l.queue || ' ' || l.concurrency_key, to_jsonb(l)
        from jobq_private.key_limit as l
        union all
        select
            d.type, d.name,
            to_jsonb(d) || jsonb_build_object('checksum', md5(d.ciphertext))
        from jobq_private.definition as d
        union all
        select
            'endpoint', e.endpoint,
            to_jsonb(e) || jsonb_build_object('is_paused', e.paused_at is not null)
        from jobq_private.endpoint as e
        union all
        select 'queue_grant', concat_ws(' ', g.grantee, g.queue, g.privilege), to_jsonb(g)
        from jobq_private.queue_grant as g
        union all
        select 'schedule', s.name, jsonb_build_object('schedule_id', s.schedule_id)
        from jobq_private.schedule as s
        where s.status <> 'retired'
    ) as d (type, name, declaration)
    order by d.type, d.name
$$;

comment on function jobq_internal.list_declarations is 'Lists definitions that must be the same on all shards, and schedules, which are on one. Only for jobq_owner.';

-- Purpose: Lists which shards receive new keys and since when, newest first.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: number of the epoch.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: the start of the epoch; may be in the future.
-- Column keys_until: when the last idempotency key of the previous epoch expires.
-- Returns: one row per epoch; none in a database outside a cluster.
-- Example: select epoch, shard_ids from jobq_internal.list_epochs();
create or replace function jobq_internal.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;

grant execute on function jobq_internal.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_epochs is 'Lists which shards receive new keys and since when, newest first.';

-- Purpose: Counts what would be lost if this shard were removed. Only for jobq_owner.
-- Invariant: reads only. Raises: nothing.
-- Column type: queued, running, retrying or blocked jobs, jobs on the move, schedules, and
-- idempotency keys that are still valid.
-- Column count: how many there are.
-- Example: select type, count from jobq_internal.list_leftovers();
create or replace function jobq_internal.list_leftovers()
returns table (type text, count bigint)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select j.state || ' jobs', count(*) from jobq_private.job as j group by j.state
    union all
    select 'jobs on the move', count(*)
    from jobq_private.moved_job as m
    where m.job is not null
    having count(*) > 0
    union all
    select 'schedules', count(*)
    from jobq_private.schedule as s
    where s.status <> 'retired'
    having count(*) > 0
    union all
    select 'idempotency keys', count(*)
    from jobq_private.idempotency_key as k
    where k.created_at >= now() - (select g.key_retention from jobq_private.setting as g)
    and not exists (
        select from jobq_private.moved_job as m
        where m.job_id = k.job_id and m.shard_id is not null and m.job is null
    )
    having count(*) > 0
$$;

comment on function jobq_internal.list_leftovers is 'Counts what would be lost if this shard were removed. Only for jobq_owner.';

-- Purpose: Lists which of these jobs have moved to another shard.
-- Invariant: reads only. Raises: nothing.
-- Column shard_id: number of the other shard.
-- Example: select job_id, shard_id from jobq_internal.list_moved('{}');
create or replace function jobq_internal.list_moved(job_ids uuid[])
returns table (job_id uuid, shard_id integer)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select m.job_id, m.shard_id
    from jobq_private.moved_job as m
    where m.job_id = any(list_moved.job_ids) and m.shard_id is not null
$$;

grant execute on function jobq_internal.list_moved
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_moved is 'Lists which of these jobs have moved to another shard.';

-- Purpose: Lists the statements that make an empty database a router. Only for
-- jobq_owner.
-- Invariant: reads only. Raises: nothing.
-- Column ordinal: position of the statement.
-- Column statement: one SQL statement.
-- Example: select statement from jobq_internal.list_router_statements() order by ordinal limit 1;
create or replace function jobq_internal.list_router_statements()
returns table (ordinal integer, statement text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (row_number() over (order by s.part, s.name collate "C", s.statement collate "C"))::integer, s.statement
    from (
        select 1, t.typname::text, format('create type %s as (%s)', t.oid::regtype, (
            select string_agg(
                quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                order by a.attnum
            )
            from pg_attribute as a
            where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        ))
        from pg_type as t
        where t.typnamespace = 'jobq'::regnamespace
        and t.oid in (select p.prorettype from pg_proc as p where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace))
        union all
        select 2, 'error', format(
            'create view jobq_private.error (code, sqlstate, http_status, message, hint) as values %s',
            string_agg(format(
                '(%L, %L, %s::smallint, %L, %L)',
                e.code, e.sqlstate, e.http_status, e.message, e.hint
            ), ', ' order by e.code)
        )
        from jobq_private.error as e
        union all
        select 3, 'error', 'grant select on jobq_private.error '
            'to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader'
        union all
        select 3, f.name, pg_get_functiondef(f.signature)
        from jobq_private.routed_function as f
        where f.class = 'own'
        union all
        select 3, p.name, pg_get_functiondef(to_regproc('jobq_private.' || p.name))
        from unnest('{raise_error,check_given,check_argument,check_problem}'::text[]) as p (name)
        union all
        select 4, f.name, c.statement
        from jobq_private.routed_function as f
        cross join lateral jobq_private.router_calls(f) as c
        union all
        select 5, f.name, jobq_private.router_function(f)
        from jobq_private.routed_function as f
        where f.class <> 'own'
        union all
        select d.part, f.name, format(d.form, f.signature, d.value)
        from jobq_private.routed_function as f
        cross join lateral (
            values
            (6, 'comment on function %s is %L', obj_description(f.signature, 'pg_proc')),
            (6, 'alter function %s owner to %s', case f.class when 'own' then 'jobq_owner' end),
            (7, 'revoke all on function %s from %s', 'public'),
            (8, 'grant all on function %s to %s', (
                select string_agg(r.rolname, ', ' order by r.rolname)
                from pg_proc as p
                cross join lateral aclexplode(p.proacl) as a
                join pg_roles as r on r.oid = a.grantee
                where p.oid = f.signature
                and r.rolname in ('jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader')
            ))
        ) as d (part, form, value)
        where d.value is not null
    ) as s (part, name, statement)
$$;

comment on function jobq_internal.list_router_statements is 'Lists the statements that make an empty database a router. Only for jobq_owner.';

-- Purpose: Lists the databases of the cluster.
-- Invariant: reads only. Raises: nothing.
-- Column url: the address for routers and clients.
-- Column is_own: whether it is this database.
-- Column successor: the shard that takes over its jobs, if any.
-- Column removed_at: when it was removed; its ids lead to the successor since.
-- Returns: one row per shard; none in a database outside a cluster.
-- Example: select shard_id, url from jobq_internal.list_shards();
create or replace function jobq_internal.list_shards()
returns table (
    shard_id integer, url text, is_own boolean, successor integer, removed_at timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.shard_id, s.url, s.is_own, s.successor, s.removed_at
    from jobq_private.shard as s
    order by s.shard_id
$$;

grant execute on function jobq_internal.list_shards
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_shards is 'Lists the databases of the cluster.';

-- Purpose: Sets which shards receive new keys from a given time. Only for jobq_owner.
-- Invariant: existing jobs stay on their shard. Epochs are numbered without gaps, and
-- an epoch that has begun never changes, so a key still finds the job that was created
-- with it. Repeating an epoch changes nothing.
-- Raises: 22004, 22023.
-- Argument epoch: number of the epoch: one more than the last.
-- Argument shard_ids: the shards that get new keys, each declared by put_shard; a shard
-- that is left out is drained.
-- Argument began_at: the start; choose some seconds in the future, so that routers and
-- clients read it in time. Null means now.
-- Example: select jobq.put_epoch(1, '{0}');
create or replace function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _last integer;
begin
    perform jobq_private.check_given('epoch and shard_ids', num_nulls(epoch, shard_ids));
    perform jobq_private.check_argument(case
        when coalesce(array_ndims(put_epoch.shard_ids), 0) <> 1 or exists (
            select from unnest(put_epoch.shard_ids) as i (shard_id)
            left join jobq_private.shard as s using (shard_id)
            group by i.shard_id
            having count(*) > 1 or count(s.shard_id) = 0
        )
        then 'shard_ids must be shards added by put_shard, each once'
        when put_epoch.began_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'began_at must be in the years 1 to 9999'
    end);
    lock table jobq_private.shard_epoch in share row exclusive mode;
    select coalesce(max(e.epoch), 0) into _last from jobq_private.shard_epoch as e;
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids = put_epoch.shard_ids
    ) then
        return;
    end if;
    perform jobq_private.check_argument(case
        when put_epoch.epoch <> _last + 1 then format('epoch must be %s', _last + 1)
    end);
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()));
    perform jobq_private.record_audit(
        'put_epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;

comment on function jobq.put_epoch is 'Sets which shards receive new keys from a given time. Only for jobq_owner.';

-- Purpose: Adds a database to the cluster, or sets the number of this one. Only for
-- jobq_owner.
-- Invariant: new ids contain the number. A database that has had jobs keeps its number
-- (0 until one is set), since their ids contain it.
-- Raises: 22004, 22023.
-- Argument url: the address for routers and clients, a libpq URL without a password.
-- Argument is_own: whether it is the database of this call.
-- Example: select jobq.put_shard(0, 'postgresql://one.example.org/jobq', is_own => true);
create or replace function jobq.put_shard(
    shard_id integer, url text, is_own boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_given('shard_id, url and is_own', num_nulls(shard_id, url, is_own));
    perform jobq_private.check_argument(case
        when put_shard.shard_id not between 0 and 255 then 'shard_id must be from 0 to 255'
        when length(put_shard.url) not between 1 and 2048
            or put_shard.url ~ '://[^/@]*:[^/@]*@' or put_shard.url ~* 'password='
        then 'url must have 1 to 2048 characters and no password'
        when exists (
            select from jobq_private.shard as s
            where s.shard_id = put_shard.shard_id and s.removed_at is not null
        )
        then format('shard %s was removed; ids contain its number', put_shard.shard_id)
    end);
    if put_shard.is_own and put_shard.shard_id <> (
        select g.shard_id from jobq_private.setting as g
    ) then
        perform jobq_private.become_shard(put_shard.shard_id);
    end if;
    update jobq_private.shard as s
    set is_own = false
    where s.is_own and put_shard.is_own and s.shard_id <> put_shard.shard_id;
    insert into jobq_private.shard as s (shard_id, url, is_own)
    values (put_shard.shard_id, put_shard.url, put_shard.is_own)
    on conflict on constraint shard_pkey do update
    set url = excluded.url, is_own = excluded.is_own;
    perform jobq_private.record_audit('put_shard', put_shard.shard_id::text, put_shard.url);
end
$$;

comment on function jobq.put_shard is 'Adds a database to the cluster, or sets the number of this one. Only for jobq_owner.';

-- Purpose: Sets which shard takes over the jobs of a drained shard, or removes the
-- shard. Only for jobq_owner.
-- Invariant: the shard receives no new keys. Its successor does not change while it exists,
-- because jobs may have moved there. A shard is removed only if it has no unfinished job
-- and no schedule; what it checks is its own, so remove it there first. The same call again
-- changes nothing.
-- Raises: 22004, 22023.
-- Argument shard_id: the shard.
-- Argument successor: the shard that takes over.
-- Argument is_removed: whether ids and keys of the shard lead to the successor from now on.
-- Example: select jobq_internal.put_successor(1, 0);
create or replace function jobq_internal.put_successor(
    shard_id integer, successor integer, is_removed boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _shard jobq_private.shard;
begin
    perform jobq_private.check_given(
        'shard_id, successor and is_removed', num_nulls(shard_id, successor, is_removed)
    );
    lock table jobq_private.shard in share row exclusive mode;
    select s.* into _shard from jobq_private.shard as s
    where s.shard_id = put_successor.shard_id;
    if _shard.successor = put_successor.successor
        and (_shard.removed_at is not null or not put_successor.is_removed)
    then
        return;
    end if;
    perform jobq_private.check_argument(case
        when _shard.shard_id is null or _shard.successor <> put_successor.successor
            or put_successor.successor = put_successor.shard_id or not exists (
                select from jobq_private.shard as s
                where s.shard_id = put_successor.successor and s.removed_at is null
                and s.successor is distinct from put_successor.shard_id
            )
        then format('successor must be another shard%s',
            ', which is ' || _shard.successor || ' and does not change')
        when exists (
            select from jobq_private.shard_epoch as e
            where put_successor.shard_id = any(e.shard_ids)
            and not exists (
                select from jobq_private.shard_epoch as newer
                where newer.epoch > e.epoch and newer.began_at <= now()
            )
        )
        then format('shard %s still receives new keys; drain it first', put_successor.shard_id)
        when put_successor.is_removed and _shard.is_own then (
            select format('shard %s still has %s', put_successor.shard_id,
                string_agg(l.count || ' ' || l.type, ', '))
            from jobq_internal.list_leftovers() as l
            where l.type <> 'idempotency keys'
            having count(*) > 0
        )
    end);
    -- Shards that were removed before lead to the same successor.
    update jobq_private.shard as s
    set successor = put_successor.successor, removed_at = coalesce(
        s.removed_at, case when put_successor.is_removed then now() end
    )
    where s.shard_id = put_successor.shard_id
    or put_successor.is_removed and s.successor = put_successor.shard_id and s.removed_at is not null;
    perform jobq_private.record_audit(
        'put_successor', put_successor.shard_id::text, put_successor.successor::text
    );
end
$$;

comment on function jobq_internal.put_successor is 'Sets which shard takes over the jobs of a drained shard, or removes the shard. Only for jobq_owner.';

-- Purpose: Stores jobs that another shard has sent, each once. Only for jobq_owner.
-- Invariant: each arrives once, however often it is sent. It keeps its id, keys, times and
-- attempts. A delivery gets the version of the endpoint that this shard has.
-- Raises: 22004, 22023, JQ002.
-- Argument jobs: an array of what send_jobs() returned.
-- Returns: how many had not arrived before.
-- Example: select jobq_internal.receive_jobs('[]');
create or replace function jobq_internal.receive_jobs(jobs jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _arrived uuid[];
    _queues text[];
begin
    perform jobq_private.check_given('jobs', num_nulls(receive_jobs.jobs));
    perform jobq_private.check_argument(case
        when jsonb_typeof(receive_jobs.jobs) <> 'array' or exists (
            select from jsonb_array_elements(receive_jobs.jobs) as a (job)
            where (a.job ->> 'job_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$') is not true
            or (a.job ->> 'moves' ~ '^[0-9]{1,9}$') is not true
        )
        then 'jobs must be what send_jobs returned'
    end);
    with arrived as (
        insert into jobq_private.moved_job as m (job_id, moves, job)
        select (a.job ->> 'job_id')::uuid, (a.job ->> 'moves')::integer, a.job
        from jsonb_array_elements(receive_jobs.jobs) as a (job)
        on conflict on constraint moved_job_pkey do update
        set moves = excluded.moves, shard_id = null, job = excluded.job,
            moved_at = excluded.moved_at
        where m.moves < excluded.moves
        returning m.job_id
    )
    select array_agg(a.job_id) into _arrived from arrived as a;
    if _arrived is null then
        return 0;
    end if;
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id, created_at)
    select
        m.job ->> 'kind', m.job ->> 'idempotency_key', m.job_id,
        (m.job ->> 'key_created_at')::timestamptz
    from jobq_private.moved_job as m
    where m.job_id = any(_arrived) and m.job ->> 'key_created_at' is not null
    on conflict on constraint idempotency_key_pkey do nothing;
    with stored as (
        insert into jobq_private.job (
            state, previous_state, transition_slot, key_id, delivery_version,
            -- columns of jobq_private.job but due_at, claimed_at, heartbeat_at, lease_expires_at,
            -- worker, slot, reported_cost:
            job_id, created_at, run_at, cancel_requested_at, slot_at, expires_at, waits_since, lease, timeout,
            schedule_id, attempt, uncounted, max_attempts, expiries, priority, is_awaited, region, queue,
            kind, concurrency_key, cost, batch_id, idempotency_key, dedup_key, dedup, cancel_reason,
            last_error_code, last_error, last_error_details, keep, metadata, progress, payload
            -- end
        )
        select
            r.state, r.previous_state, pg_backend_pid() & 1023,
            jobq_private.key_of(r.queue, r.kind, r.concurrency_key, r.key_id is not null),
            case when r.delivery_version is not null then (
                select k.delivery_version from jobq_private.kind as k where k.kind = r.kind
            ) end,
            -- the same of r:
            r.job_id, r.created_at, r.run_at, r.cancel_requested_at, r.slot_at, r.expires_at, r.waits_since,
            r.lease, r.timeout, r.schedule_id, r.attempt, r.uncounted, r.max_attempts, r.expiries, r.priority,
            r.is_awaited, r.region, r.queue, r.kind, r.concurrency_key, r.cost, r.batch_id, r.idempotency_key,
            r.dedup_key, r.dedup, r.cancel_reason, r.last_error_code, r.last_error, r.last_error_details,
            r.keep, r.metadata, r.progress, r.payload
            -- end
        from jobq_private.moved_job as m
        cross join lateral jsonb_populate_record(null::jobq_private.job, m.job) as r
        where m.job_id = any(_arrived)
        returning queue
    )
    select array_agg(distinct s.queue) into _queues from stored as s;
    update jobq_private.moved_job as m set job = null where m.job_id = any(_arrived);
    perform jobq_private.open_keys(_arrived);
    perform jobq_private.wake(_queues);
    return cardinality(_arrived);
end
$$;

comment on function jobq_internal.receive_jobs is 'Stores jobs that another shard has sent, each once. Only for jobq_owner.';

-- Purpose: Takes waiting jobs out of a shard for its successor. Only for jobq_owner.
-- Invariant: a job leaves `job` in the transaction that stores it in moved_job, so nobody
-- claims it, and it is returned again until confirm_jobs(). Jobs stay that others may refer
-- to or that refer to others (parents, children, batches, schedules, steps, signals, dedup
-- keys), and jobs for whose end a client waits.
-- Raises: 22004, 22023.
-- Argument max_jobs: the most jobs to return.
-- Column job: the job, for receive_jobs().
-- Returns: the jobs that the successor has to receive; none if all that can move have moved, or
-- there is no successor.
-- Example: select job_id from jobq_internal.send_jobs(100);
create or replace function jobq_internal.send_jobs(max_jobs integer)
returns table (job_id uuid, job jsonb)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _endings jobq_private.ending[];
    _awaited constant integer[] := array(
        select l.objid::integer
        from pg_locks as l
        where l.locktype = 'advisory'
        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
        and l.classid::integer = jobq_private.lock_class('ending')
    );
    _successor constant integer := (
        select s.successor from jobq_private.shard as s where s.is_own and s.removed_at is null
    );
begin
    perform jobq_private.check_count('max_jobs', send_jobs.max_jobs, 1, 1000);
    if _successor is not null and not exists (select from jobq_private.moved_job as m where m.job is not null) then
        with waiting as materialized (
            select j.job_id
            from jobq_private.job as j
            where j.state in ('queued', 'retrying')
            and not j.is_awaited
            and num_nonnulls(j.batch_id, j.schedule_id, j.dedup_key, j.cancel_requested_at) = 0
            and not exists (select from jobq_private.edge as e where e.child = j.job_id)
            and not exists (select from jobq_private.edge as e where e.parent = j.job_id)
            and not exists (select from jobq_private.step as t where t.job_id = j.job_id)
            and not exists (select from jobq_private.waiter as w where w.job_id = j.job_id)
            and not exists (select from jobq_private.stream_chunk as c where c.job_id = j.job_id)
            and not exists (select from jobq_private.node as n where n.job_id = j.job_id)
            and not exists (select from jobq_private.pending as p where p.id = j.job_id)
            and j.job_id not in (select v.job_id from jobq_private.event as v)
            and hashtext(j.job_id::text) & 1023 <> all(_awaited)
            limit send_jobs.max_jobs
            for update skip locked
        ),
        gone as (
            delete from jobq_private.job as j
            using waiting as w
            where j.job_id = w.job_id
            returning j.*
        ),
        stored as (
            insert into jobq_private.moved_job as m (job_id, moves, shard_id, job)
            select
                g.job_id, 1, _successor, to_jsonb(g) || jsonb_build_object('key_created_at', (
                    select k.created_at
                    from jobq_private.idempotency_key as k
                    where k.kind = g.kind and k.idempotency_key = g.idempotency_key
                    and k.job_id = g.job_id
                ))
            from gone as g
            on conflict on constraint moved_job_pkey do update
            set moves = m.moves + 1, shard_id = excluded.shard_id, job = excluded.job,
                moved_at = excluded.moved_at
        )
        select array_agg(row(
            g.job_id, g.attempt, 'cancelled', g.queue, g.kind, g.key_id,
            g.concurrency_key, g.slot, false, null, false
        )::jobq_private.ending)
        into _endings
        from gone as g
        where g.key_id is not null;
        if _endings is not null then
            -- A job left its key, as if it had been cancelled.
            perform jobq_private.on_end(_endings);
        end if;
    end if;
    return query
    select m.job_id, m.job || jsonb_build_object('moves', m.moves)
    from jobq_private.moved_job as m
    where m.job is not null
    order by m.job_id
    limit send_jobs.max_jobs;
end
$$;

comment on function jobq_internal.send_jobs is 'Takes waiting jobs out of a shard for its successor. Only for jobq_owner.';

-- Purpose: Returns the shard of a job, which is part of its id.
-- Invariant: the tenth byte of the id, the two digits before the last dash; a database outside a cluster is shard 0. Raises:
-- nothing.
-- Returns: number of the shard, 0 to 255; null for null.
-- Example: select jobq_internal.shard_of('0198c0de-1234-7abc-9f03-0123456789ab');
create or replace function jobq_internal.shard_of(job_id uuid)
returns integer
language sql
immutable
strict
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select get_byte(uuid_send(shard_of.job_id), 9)
$$;

grant execute on function jobq_internal.shard_of
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.shard_of is 'Returns the shard of a job, which is part of its id.';

commit;
