-- Purpose: the statements of a router's function: they find the shard and call the
-- function there, as its class says.
-- Never: ONE_DATABASE.
create or replace function jobq_private.router_body(called jobq_private.routed_function)
returns text
language sql
stable
parallel safe
as $$
    select case called.class
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
        else jobq_private.router_answer(called, format('jobq_router.%I(%s)', called.name, case
            when p.place is null then substr(g.given, 3) else '_partition' || g.given
        end))
    end
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
            string_agg(', ' || case n.name
                when 'job_ids' then '_ids'
                when called.detail then n.name || ' - _count'
                else '$' || i.n
            end, '' order by i.n) as rest,
            (
                select string_agg('a.' || replace(o.name, 'ordinal', 'ordinal_'), ', ')
                from unnest(called.outputs) as o (name)
            ) as columns
        from unnest(called.inputs) with ordinality as i (type, n)
        cross join lateral (
            select f.proargnames[i.n] from pg_proc as f where f.oid = called.function_oid
        ) as n (name)
    ) as g
    cross join lateral (select jobq_private.router_place(called)) as p (place)
$$;
