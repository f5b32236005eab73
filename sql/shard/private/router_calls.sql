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
