-- Deploy jobq:shard to pg
-- Made by sql/snapshot.py from sql/shard/: edit that.
begin;
set local role jobq_owner;

-- Purpose: the number of this database in its cluster; 0 where it is none's.
-- Invariant: a constant, so that ids cost no look at a table: put_shard writes it anew, and
-- what is there stays. No SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.own_shard
do $do$
begin
    if to_regprocedure('jobq_private.own_shard()') is null then
        create function jobq_private.own_shard()
        returns integer
        language sql
        immutable
        parallel safe
        security invoker
        as 'select 0';
    end if;
end
$do$;

revoke all on function jobq_private.own_shard() from public;

comment on function jobq_private.own_shard() is
'The number of this database in its cluster.';

-- Purpose: have the ids of this database carry another number.
-- Invariant: refused where jobs exist, whose ids carry the old one. What calls own_shard was
-- planned with it as a constant, and is planned anew. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.job)
    or exists (select from jobq_private.job_archive)
    or exists (select from jobq_private.schedule) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'this database has jobs or schedules, and keeps its number '
            || jobq_private.own_shard()
        );
    end if;
    execute format(
        'create or replace function jobq_private.own_shard() returns integer '
        'language sql immutable parallel safe security invoker as %L',
        'select ' || become_shard.shard_id
    );
end
$$;

revoke all on function jobq_private.become_shard from public;

comment on function jobq_private.become_shard is
'Has the ids of this database carry another number.';

-- Purpose: what a router must know of each public function: how it is called, what comes back,
-- and where it is answered. One that has no route is refused.
-- Column inputs: the types of what is given.
-- Column outputs: the names and types of the columns that come back, where there are several.
-- Column answer: void, set, record (the columns are parameters) or value.
create or replace view jobq_private.routed_function as
select
    p.oid as function_oid, p.proname::text as name,
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
where p.pronamespace = 'jobq'::regnamespace
and p.prorettype <> 'trigger'::regtype;

revoke all on jobq_private.routed_function from public;

comment on view jobq_private.routed_function is
'What a router must know of each public function.';

-- Purpose: the functions of PL/Proxy by which a router calls one function on its shards.
-- Invariant: one line each: on the partition that the first argument names, on any, on all, or on
-- those that the first argument names for each element, whose numbers the second holds.
-- A single value is selected without from, which spares the shard a scan. Raises: nothing.
create or replace function jobq_private.router_calls(called jobq_private.routed_function)
returns table (statement text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
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
            end, '<call>', format('jobq.%I(%s)', called.name, c.given)
        )
    )
    from (values
        ('one', '{integer}'::text[], 'run on $1; select * from <call>'),
        ('any', '{}', 'run on any; select * from <call>'),
        ('all', '{}', 'run on all; select * from <call>'),
        ('split', '{integer[],integer[]}',
         'split all; run on $1; select ($2)[row_number() over ()] as ordinal_, a.* from <call> as a')
    ) as w (way, first, body)
    cross join lateral (
        select
            array_agg(
                case when i.is_list then 'jsonb[]' when i.is_text then 'text' else i.type end
                order by i.n
            ) as types,
            string_agg(
                case when i.is_list then format(
                    'case when array_remove($%1$s, null) <> ''{}'' then to_jsonb($%1$s) end', i.place
                ) else '$' || i.place || case when i.is_text then '::jsonb' else '' end end, ', '
                order by i.n
            ) as given,
            case
                when w.way = 'split'
                then format('table (ordinal_ integer, %s)', array_to_string(called.output_columns, ', '))
                when called.answer = 'set' then called.result
                when called.answer = 'record'
                then format('table (%s)', array_to_string(called.output_columns, ', '))
                when w.way in ('one', 'any') and called.answer = 'value' then called.result
                else 'setof ' || called.result
            end as result
        from (
            select
                g.type, g.n, g.n + cardinality(w.first) as place,
                w.way = 'split' and g.type = 'jsonb' as is_list,
                called.class = 'jobs' and g.type = 'jsonb' as is_text
            from unnest(called.inputs) with ordinality as g (type, n)
        ) as i
    ) as c
    where w.way = any(case called.class
        when 'own' then '{}'::text[]
        when 'refused' then '{}'
        when 'every' then '{all}'
        when 'all' then '{all}'
        when 'split' then '{one,split}'
        when 'key' then '{one,any}'
        else '{one}'
    end)
$$;

revoke all on function jobq_private.router_calls from public;

comment on function jobq_private.router_calls is
'Writes the functions of PL/Proxy by which a router calls one function on its shards.';

-- Purpose: the shard that a job is on, by its id: the tenth byte, which stands as two digits before
-- the last dash. That of a batch or a schedule says so too.
-- Invariant: reads the id alone; a database that is in no cluster is shard 0. Raises: nothing.
-- Returns: its number, 0 to 255; null for null.
-- Example: select jobq.shard_of('0198c0de-1234-7abc-9f03-0123456789ab');
create or replace function jobq.shard_of(job_id uuid)
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

revoke all on function jobq.shard_of from public;
grant execute on function jobq.shard_of
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.shard_of is
'Returns the number of the shard that a job is on, which its id tells.';

-- Purpose: the function of a router that stands for a public function of its shards: it says
-- where, calls there, and tells errors as the shard would. Its class is its template.
-- Invariant: named, typed and defaulted as on the shard. Raises: nothing. Never: ONE_DATABASE.
create or replace function jobq_private.router_function(called jobq_private.routed_function)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select format(
        $template$create function jobq.%I(%s) returns %s language plpgsql %s as $router$
#variable_conflict use_column
declare
    %s
    _detail text;
    _hint text;
begin
    %s
exception when others then
    get stacked diagnostics _detail = pg_exception_detail, _hint = pg_exception_hint;
    perform jobq_router.tell(sqlstate, sqlerrm, _detail, _hint, %s);
end
$router$
$template$,
        called.name, called.arguments, called.result, called.volatility,
        case
            when called.class = 'split'
            then format('_places integer[] := jobq_router.places_of_%s(%I);', called.detail, called.detail)
            when called.class = 'some' then '_partition integer; _ids uuid[]; _found integer; _count integer := 0;'
            when called.class = 'key' then '_partition integer;'
            when w.place is not null then format('_partition integer := %s;', w.place)
            else ''
        end,
        case called.class
            when 'key' then format(
                'if coalesce(concurrency_key, idempotency_key, dedup_key) is null and after is null '
                'and batch_id is null and jobq_router.is_whole() then return jobq_router.%1$I(%2$s); '
                'elsif coalesce(concurrency_key, idempotency_key, dedup_key) is not null and after is null '
                'and batch_id is null and (idempotency_key is null or jobq_router.is_settled()) '
                'then _partition := jobq_router.by_key(coalesce(concurrency_key, idempotency_key, dedup_key)); '
                'else _partition := jobq_router.place('
                'kind, concurrency_key, idempotency_key, dedup_key, after, batch_id); end if; '
                'return jobq_router.%1$I(_partition, %2$s);',
                called.name, substr(g.given, 3)
            )
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
                'if %s then return query select * from jobq_router.%I(_places[1]%s); return; end if;'
                'return query select %s from jobq_router.%I(_places, jobq_router.count_to(cardinality(_places))%s)'
                ' as a order by a.ordinal_;',
                g.is_whole, called.name, g.given, g.columns, called.name, g.elements
            )
            when 'some' then format(
                'for _partition, _ids in select * from jobq_router.parts_of(job_ids) loop '
                'exit when _count >= %1$I; '
                'return query select * from jobq_router.%2$I(_partition%3$s); '
                'get diagnostics _found = row_count; _count := _count + _found; end loop;',
                called.detail, called.name, g.rest
            )
            else a.answer
        end,
        case when w.place is not null or called.class = 'key' then '_partition' else 'null' end
    )
    from (
        select
            coalesce(string_agg(', $' || i.n, '' order by i.n), '') as given,
            string_agg(', ' || case
                when i.type = 'jsonb' then format('jobq_router.elements($%s, cardinality(_places))', i.n)
                else '$' || i.n
            end, '' order by i.n) as elements,
            'cardinality(_places) = 1' || string_agg(case
                when i.type = 'jsonb' or i.type like '%[]'
                then format(' or jobq_router.size($%s) <> cardinality(_places)', i.n)
                else ''
            end, '' order by i.n) as is_whole,
            string_agg(', ' || case p.name
                when 'job_ids' then '_ids'
                when called.detail then p.name || ' - _count'
                else '$' || i.n
            end, '' order by i.n) as rest,
            (
                select string_agg('a.' || replace(o.name, 'ordinal', 'ordinal_'), ', ')
                from unnest(called.outputs) as o (name)
            ) as columns
        from unnest(called.inputs) with ordinality as i (type, n)
        cross join lateral (
            select p.proargnames[i.n] from pg_proc as p where p.oid = called.function_oid
        ) as p (name)
    ) as g
    cross join lateral (values (case called.class
        when 'lot' then format(
            'coalesce(jobq_router.partition_of(jobq.shard_of(%s)), jobq_router.lot())',
            coalesce(nullif(called.detail, ''), 'null')
        )
        when 'id' then format(
            'coalesce(jobq_router.partition_of(jobq.shard_of(%I)), jobq_router.lot())', called.detail
        )
        when 'schedule' then format('jobq_router.place_schedule(%I::text)', called.detail)
        when 'any' then 'jobq_router.anyone()'
    end)) as w (place)
    cross join lateral (values (format(
        'jobq_router.%I(%s)', called.name,
        case when w.place is null then substr(g.given, 3) else '_partition' || g.given end
    ))) as c (call)
    cross join lateral (values (case
        when called.answer = 'void' then format('perform * from %s;', c.call)
        when called.class = 'every' then format(
            'return (select %s from %s as a);',
            case called.result
                when 'boolean' then 'bool_or(a)'
                when 'bigint' then 'sum(a)::bigint'
                else '(array_agg(a))[1]'
            end, c.call
        )
        when called.class = 'all' then replace(
            case called.answer
                when 'set' then 'return query with answers as (select * from <call>) <merge>;'
                else 'return (with answers as (select * from <call>) <merge>);'
            end, '<call>', c.call
        )
        when called.answer = 'set' then format('return query select * from %s;', c.call)
        when called.answer = 'record' then format(
            'select * from %s into %s;', c.call, array_to_string(called.outputs, ', ')
        )
        else format('return %s;', c.call)
    end)) as n (merged)
    cross join lateral (values (replace(
        n.merged, '<merge>', coalesce(nullif(called.detail, ''), 'select * from answers')
    ))) as a (answer)
$$;

revoke all on function jobq_private.router_function from public;

comment on function jobq_private.router_function is
'Writes the function of a router that stands for a public function of its shards.';

-- Purpose: the shard for a new job, by the rule that routers and clients share.
-- Invariant: what belongs together stays together: by batch_id, else after, the shard of those;
-- else by the first key given. The first 16 bits of its md5, modulo 16384, are its slot, and the
-- shard is the one for which md5 of number, colon and slot is greatest: so a shard that is added
-- takes slots from all others, no other key moves, and a router needs one md5 and a table. md5 is
-- the same in every version of PostgreSQL and every language. Without any, one at random.
-- Raises: 22004.
-- Argument shard_ids: the shards that get new keys, as the epoch has them.
-- Argument after: the jobs that it waits for, whose first decides.
-- Argument batch_id: the batch that it becomes a member of.
-- Returns: one of shard_ids, or the shard of the batch or the job that it waits for.
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
volatile
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
    if coalesce(cardinality(choose_shard.shard_ids), 0) = 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_ids');
    end if;
    return coalesce(
        jobq.shard_of(coalesce(choose_shard.batch_id, choose_shard.after[1])),
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

revoke all on function jobq.choose_shard from public;
grant execute on function jobq.choose_shard
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.choose_shard is
'Returns the shard that a new job goes to, by its keys or what it belongs to.';

-- Purpose: what makes a router's part of the public interface: the statements for its database,
-- after router.sql, written from this database's catalog and the table of routes.
-- Invariant: reads only. Raises: nothing.
-- Column ordinal: their order.
-- Column statement: one statement of SQL.
-- Returns: a row for each statement.
-- Example: select statement from jobq.list_router_statements() order by ordinal limit 1;
create or replace function jobq.list_router_statements()
returns table (ordinal integer, statement text)
language sql
stable
parallel safe
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
        and t.oid in (select p.prorettype from pg_proc as p where p.pronamespace = 'jobq'::regnamespace)
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
        select 3, p.proname, pg_get_functiondef(p.oid)
        from pg_proc as p
        left join jobq_private.route as r on r.function_name = p.proname and r.detail = ''
        where p.pronamespace = 'jobq'::regnamespace and r.class = 'own'
        or p.oid = 'jobq_private.raise_error'::regproc
        union all
        select 4, f.name, c.statement
        from jobq_private.routed_function as f
        cross join lateral jobq_private.router_calls(f) as c
        union all
        select 5, f.name, jobq_private.router_function(f)
        from jobq_private.routed_function as f
        where f.class <> 'own'
        union all
        select 6, p.proname, format(
            'comment on function %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')
        )
        from pg_proc as p
        where p.pronamespace = 'jobq'::regnamespace
        union all
        select 6, p.proname, format('alter function %s owner to jobq_owner', p.oid::regprocedure)
        from pg_proc as p
        join jobq_private.route as r on r.function_name = p.proname
        where p.pronamespace = 'jobq'::regnamespace and r.class = 'own'
        union all
        select 7, p.proname, format('revoke all on function %s from public', p.oid::regprocedure)
        from pg_proc as p
        where p.pronamespace = 'jobq'::regnamespace
        union all
        select 8, p.proname, format(
            'grant all on function %s to %s', p.oid::regprocedure, string_agg(
                quote_ident(r.rolname), ', ' order by r.rolname
            )
        )
        from pg_proc as p
        cross join lateral aclexplode(p.proacl) as a
        join pg_roles as r on r.oid = a.grantee
        where p.pronamespace = 'jobq'::regnamespace
        and r.rolname in ('jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader')
        group by p.oid, p.proname
    ) as s (part, name, statement)
$$;

revoke all on function jobq.list_router_statements from public;

comment on function jobq.list_router_statements is
'Lists the statements that make a router of an empty database. For jobq_owner alone.';

-- Purpose: what all shards of a cluster must have alike, for a comparison of theirs, and schedules,
-- which one of them has.
-- Invariant: reads only; no value of a secret is in it, but a checksum. What each database stamps
-- by itself, such as times and version numbers, is left out. Raises: nothing.
-- Column type: map, interface (this version's functions), setting, retry_preset, kind, queue,
-- limit, payload_spec, config, secret, endpoint, queue_grant or schedule.
-- Column declaration: it, as JSON.
-- Returns: a row for each.
-- Example: select type, name from jobq.list_declarations();
create or replace function jobq.list_declarations()
returns table (type text, name text, declaration jsonb)
language sql
stable
parallel safe
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
        ))
        union all
        select 'map', 'epoch ' || e.epoch, jsonb_build_object('shards', e.shard_ids)
        from jobq_private.shard_epoch as e
        union all
        select
            'interface', 'functions',
            jsonb_build_object('checksum', md5(string_agg(s.statement, ';' order by s.ordinal)))
        from jobq.list_router_statements() as s
        union all
        select 'setting', e.key, jsonb_build_object('value', e.value)
        from jobq_private.setting as s
        cross join lateral jsonb_each(to_jsonb(s)) as e
        union all
        select 'retry_preset', r.retry_preset, to_jsonb(r) from jobq_private.retry_preset as r
        union all
        select 'kind', k.kind, to_jsonb(k) from jobq_private.kind as k
        union all
        select
            'queue', q.queue,
            to_jsonb(q) || jsonb_build_object('is_paused', q.paused_at is not null)
        from jobq_private.queue as q
        union all
        select 'limit', l.queue || ' ' || l.concurrency_key, to_jsonb(l)
        from jobq_private.key_limit as l
        union all
        select 'payload_spec', p.payload_spec, to_jsonb(p) from jobq_private.payload_spec as p
        union all
        select 'config', c.config, to_jsonb(c) from jobq_private.config as c
        union all
        select
            'secret', s.secret,
            to_jsonb(s) || jsonb_build_object('checksum', md5(s.ciphertext))
        from jobq_private.secret as s
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

revoke all on function jobq.list_declarations from public;

comment on function jobq.list_declarations is
'Lists what all shards of a cluster must have alike, and the schedules, which one of them has. For jobq_owner alone.';

-- Purpose: which shards got new keys from when on, the newest first, and for how long keys of
-- the epochs before may live.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: its number.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: from when on; it may lie ahead.
-- Column keys_until: until when idempotency keys of the epoch before may live.
-- Returns: a row for each epoch; none in a database that is in no cluster.
-- Example: select epoch, shard_ids from jobq.list_epochs();
create or replace function jobq.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;

revoke all on function jobq.list_epochs from public;
grant execute on function jobq.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_epochs is
'Lists which shards get new keys, and from when on, the newest first.';

-- Purpose: the databases of the cluster, as this one knows them.
-- Invariant: reads only. Raises: nothing.
-- Column shard_id: its number.
-- Column url: how routers and clients reach it.
-- Column is_own: whether it is this database.
-- Returns: a row for each shard; none in a database that is in no cluster.
-- Example: select shard_id, url from jobq.list_shards();
create or replace function jobq.list_shards()
returns table (shard_id integer, url text, is_own boolean)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.shard_id, s.url, s.is_own
    from jobq_private.shard as s
    order by s.shard_id
$$;

revoke all on function jobq.list_shards from public;
grant execute on function jobq.list_shards
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_shards is 'Lists the databases of the cluster.';

-- Purpose: say which shards get new keys from a time on.
-- Invariant: what lives stays where it is. Epochs are numbered without gaps, and one that has
-- begun is never changed, so that whoever holds a key finds what was made with it. The same
-- epoch put again changes nothing.
-- Raises: 22004, 22023.
-- Argument epoch: its number: that of the last and 1.
-- Argument shard_ids: the shards that get new keys, each of which put_shard has named; a shard
-- that is left out is drained.
-- Argument began_at: from when on; give one some seconds ahead, for routers and clients to
-- learn of it. Null means now.
-- Returns: nothing.
-- Example: select jobq.put_epoch(1, '{0}');
create or replace function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _last integer;
begin
    if num_nulls(put_epoch.epoch, put_epoch.shard_ids) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'epoch and shard_ids');
    elsif coalesce(array_ndims(put_epoch.shard_ids), 0) <> 1 or exists (
        select from unnest(put_epoch.shard_ids) as i (shard_id)
        left join jobq_private.shard as s using (shard_id)
        group by i.shard_id
        having count(*) > 1 or count(s.shard_id) = 0
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_ids must be shards that put_shard has named, each once'
        );
    elsif put_epoch.began_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'began_at must be in the years 1 to 9999'
        );
    end if;
    lock table jobq_private.shard_epoch in share row exclusive mode;
    select max(e.epoch) into _last from jobq_private.shard_epoch as e;
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids = put_epoch.shard_ids
    ) then
        return;
    elsif put_epoch.epoch <> coalesce(_last, 0) + 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('epoch must be %s', coalesce(_last, 0) + 1)
        );
    end if;
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()));
    perform jobq_private.record_audit(
        'put_epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;

revoke all on function jobq.put_epoch from public;

comment on function jobq.put_epoch is
'Says which shards get new keys from a time on. For jobq_owner alone.';

-- Purpose: name a database of the cluster, or say that it is this one.
-- Invariant: the ids that are made from then on carry the number. A database that has had jobs
-- keeps its number, 0 until it is given one, since their ids carry it.
-- Raises: 22004, 22023.
-- Argument shard_id: its number, 0 to 255.
-- Argument url: how routers and clients reach it, as a libpq URL without a password.
-- Argument is_own: whether it is the database of this call.
-- Returns: nothing.
-- Example: select jobq.put_shard(0, 'postgresql://one.example.org/jobq', is_own => true);
create or replace function jobq.put_shard(
    shard_id integer, url text, is_own boolean default false
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(put_shard.shard_id, put_shard.url, put_shard.is_own) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_id, url and is_own');
    elsif put_shard.shard_id not between 0 and 255 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_id must be from 0 to 255'
        );
    elsif length(put_shard.url) not between 1 and 2048 or put_shard.url ~ '://[^/@]*:[^/@]*@'
    or put_shard.url ~* 'password=' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'url has 1 to 2048 characters, and no password'
        );
    end if;
    if put_shard.is_own and put_shard.shard_id <> jobq_private.own_shard() then
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

revoke all on function jobq.put_shard from public;

comment on function jobq.put_shard is
'Names a database of the cluster, or gives this one its number. For jobq_owner alone.';

commit;
