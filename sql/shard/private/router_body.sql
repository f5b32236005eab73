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
