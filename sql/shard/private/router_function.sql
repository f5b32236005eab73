-- Purpose: the router's version of a public function: it finds the shard, calls the
-- function there, and raises the shard's errors unchanged. Its class chooses the
-- template.
-- Invariant: same names, types and defaults as on the shard. PL/pgSQL refuses a column
-- with the name of an argument; such a function becomes a wrapper in SQL.
-- Raises: nothing. Never: ONE_DATABASE.
create or replace function jobq_private.router_function(called jobq_private.routed_function)
returns text
language sql
stable
parallel safe
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
    %sperform jobq_router.tell(sqlstate, sqlerrm, _detail, _hint, %s);
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
            when called.class = 'split'
            then format('_places integer[] := jobq_router.places_of_%s(%I);', called.detail, called.detail)
            when called.class = 'some' then '_partition integer; _ids uuid[]; _found integer; _count integer := 0;'
            when called.class = 'key' then '_partition integer;'
            when called.class = 'lists' then '_present integer[];'
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
        case when called.class = 'lists' then format(
            'if jobq_router.is_away(sqlstate, sqlerrm) then _present := jobq_router.present(); end if; '
            'if _present is not null then %s return; end if; ',
            replace(a.answer, c.call, format('jobq_router.%I(_present%s)', called.name, g.given))
        ) else '' end,
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
            where p.oid = called.function_oid and quote_ident(i.name) = any(called.outputs)
        ) as d
    ) as n
    cross join lateral (values (case called.class
        when 'lot' then format(
            'coalesce(jobq_router.partition_of(jobq_internal.shard_of(%s)), jobq_router.lot())',
            coalesce(nullif(called.detail, ''), 'null')
        )
        when 'id' then format(
            'coalesce(jobq_router.partition_of(jobq_internal.shard_of(%I)), jobq_router.lot())', called.detail
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
        when called.class in ('all', 'lists') then replace(
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
    end)) as m (merged)
    cross join lateral (values (replace(
        m.merged, '<merge>', coalesce(nullif(called.detail, ''), 'select * from answers')
    ))) as a (answer)
$$;
