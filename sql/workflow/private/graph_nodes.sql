-- Purpose: the jobs of a graph as passed, an array of objects with name, after and before.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.graph_nodes(graph jsonb)
returns jsonb language plpgsql stable as $$
declare
    _problem text;
    _nodes constant jsonb := graph -> 'jobs';
begin
    perform jobq_private.check_given('graph', num_nulls(graph));
    perform jobq_private.check_argument(case
        when jsonb_typeof(graph) <> 'object' or graph - 'jobs' <> '{}'
            or jsonb_typeof(_nodes) is distinct from 'array'
            or jsonb_array_length(_nodes) not between 1 and 100000
        then 'graph must be an object with jobs, an array of 1 to 100000'
    end);
    select format('job %s: %s', n.place, p.problem) into _problem
    from jsonb_array_elements(_nodes) with ordinality as n (node, place)
    cross join lateral (
        select case
            when jsonb_typeof(n.node) <> 'object' then 'must be an object'
            when jsonb_typeof(n.node -> 'name') is distinct from 'string'
                or length(n.node ->> 'name') not between 1 and 256
            then 'name must be a text of 1 to 256 characters'
            when jsonb_path_exists(n.node, 'strict $.keyvalue() ? (
                (@.key == "after" || @.key == "before") && @.value != null && (
                    @.value.type() != "array" || exists (@.value[*] ? (@.type() != "string"))))')
            then 'after and before must be arrays of names and ids'
        end as problem
    ) as p
    where p.problem is not null
    limit 1;
    _problem := coalesce(_problem, (
        select format('name %s is used twice', n.node ->> 'name')
        from jsonb_array_elements(_nodes) as n (node)
        group by n.node ->> 'name'
        having count(*) > 1
        limit 1
    ));
    perform jobq_private.check_argument(_problem);
    return _nodes;
end
$$;
