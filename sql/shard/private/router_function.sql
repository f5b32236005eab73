-- Purpose: the router's version of a public function: it finds the shard, calls the function
-- there, and raises the shard's errors unchanged. Its class chooses the template.
-- Invariant: same names, types and defaults as on the shard. PL/pgSQL refuses a column
-- with the name of an argument; such a function becomes a wrapper in SQL.
create or replace function jobq_private.router_function(called jobq_private.routed_function)
returns text language sql stable as $$
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
