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
