-- Deploy jobq:shard to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: the statements of a router's function: they find the shard and call the function
-- there, as its class says. Never: ONE_DATABASE.
create or replace function jobq_private.router_body(called jobq_private.routed_function)
returns text language sql stable as $$
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
            'exit when _count >= greatest(%1$I, 1); '  -- the first shard refuses a maximum below 1
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

-- Purpose: the PL/Proxy functions through which a router calls one function on its shards.
-- Invariant: one line each: on the partition in the first argument, on all, or on those that the
-- first argument lists. A single value is selected without from, which saves the shard a scan.
create or replace function jobq_private.router_calls(called jobq_private.routed_function)
returns table (statement text) language sql stable as $$
    select format(
        'create function jobq_router.%I(%s) returns %s language plproxy as '
        '$plproxy$ cluster ''jobq''; %s; $plproxy$',
        called.name, array_to_string(w.first || called.inputs, ', '), c.result,
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
            string_agg('$' || i + cardinality(w.first), ', ' order by i) as given,
            case
                when called.answer = 'set' then called.result
                when called.answer = 'record'
                then format('table (%s)', array_to_string(called.output_columns, ', '))
                when w.way = 'one' and called.answer = 'value' then called.result
                else 'setof ' || called.result
            end as result
        from generate_series(1, cardinality(called.inputs)) as i
    ) as c
    where case
        when called.class in ('own', 'refused') then false
        when called.class in ('every', 'all') then w.way = 'all'
        when called.class = 'lists' then w.way in ('all', 'present')
        else w.way = 'one'
    end
$$;

-- Purpose: Takes waiting jobs out of a shard for its successor. Only for jobq_owner.
-- Invariant: a job leaves `job` in the transaction that stores it in moved_job, so nobody claims
-- it, and it is returned again until confirm_jobs(). Jobs stay that others may refer to or that
-- refer to others (parents, children, batches, schedules, steps, signals, dedup keys), and jobs
-- for whose end a client waits. Raises: 22004, 22023.
-- Argument max_jobs: the most jobs to return.
-- Column job: the job, for receive_jobs().
-- Returns: the jobs that the successor has to receive; none if all that can move have moved, or
-- there is no successor.
-- Example: select job_id from jobq_internal.send_jobs(100);
create or replace function jobq_internal.send_jobs(max_jobs integer)
returns table (job_id uuid, job jsonb) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
            select w.job_id
            from (
                select j.job_id, j.ctid
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
                offset 0
            ) as w
            -- Not a job that has run since this snapshot: it may have steps by now.
            where jobq_private.lock_job(w.ctid)
            limit send_jobs.max_jobs
        ),
        gone as (
            delete from jobq_private.job as j
            using waiting as w
            where j.job_id = w.job_id
            returning j.*
        ),
        stored as (
            insert into jobq_private.moved_job as m (job_id, moves, shard_id, job)
            select g.job_id, 1, _successor, to_jsonb(g) || jsonb_build_object(
                'key_created_at', k.created_at,
                -- The successor postpones it itself if its endpoint is paused.
                'run_at', coalesce(p.run_at, g.run_at)
            )
            from gone as g
            left join jobq_private.idempotency_key as k
                on k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id
            left join jobq_private.parked_job as p
                on p.job_id = g.job_id and g.run_at = jobq_private.parked_until()
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

commit;
