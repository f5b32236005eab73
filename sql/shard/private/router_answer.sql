-- Purpose: the statement with which a router's function returns what a call on the
-- shards answers, merged if several answer.
create or replace function jobq_private.router_answer(called jobq_private.routed_function, call text)
returns text language sql stable as $$
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
