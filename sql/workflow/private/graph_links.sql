-- Purpose: the names of the jobs of a graph, and what these name in after and before:
-- existing jobs, by id or by name in the graph that they join, and the edges by place:
-- first the new jobs, then the existing ones.
-- Invariant: each must exist. A name of a new job has precedence over one of the graph.
-- Raises: 22023, JQ001.
create or replace function jobq_private.graph_links(
    nodes jsonb, graph_id uuid,
    out names text[], out others uuid[], out arrows jobq_private.arrow[]
)
language plpgsql stable as $$
declare
    _missing text;
begin
    names := array(
        select e.node ->> 'name'
        from jsonb_array_elements(nodes) with ordinality as e (node, place)
        order by e.place
    );
    perform jobq_private.check_argument((
        select format('name %s is already in the graph', n.name)
        from jobq_private.node as n
        where n.graph_id = graph_links.graph_id and n.name = any(graph_links.names)
        limit 1
    ));
    with named as materialized (
        select e.place::integer as place, m.is_before, w.name
        from jsonb_array_elements(graph_links.nodes) with ordinality as e (node, place)
        cross join lateral (
            values (false, e.node -> 'after'), (true, e.node -> 'before')
        ) as m (is_before, names)
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(m.names, 'null'), '[]')
        ) as w (name)
    ),
    existing as materialized (
        select d.name, coalesce(n.job_id, case
            when d.name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then d.name::uuid
        end) as job_id
        from (
            select w.name from named as w
            except
            select n.name from unnest(graph_links.names) as n (name)
        ) as d
        left join jobq_private.node as n
            on n.graph_id = graph_links.graph_id and n.name = d.name
    ),
    place as materialized (
        select n.name, n.place::integer as place, null::uuid as job_id
        from unnest(graph_links.names) with ordinality as n (name, place)
        union all
        select
            x.name,
            cardinality(graph_links.names) + dense_rank() over (order by x.job_id)::integer,
            x.job_id
        from existing as x
    )
    select
        array(
            select distinct p.job_id from place as p where p.place > cardinality(names)
            order by p.job_id
        ),
        array(
            select distinct case
                when w.is_before then row(p.place, w.place)::jobq_private.arrow
                else row(w.place, p.place)::jobq_private.arrow
            end
            from named as w
            join place as p on p.name = w.name
        ),
        (select min(x.name) from existing as x where x.job_id is null)
    into others, arrows, _missing;
    perform jobq_private.check_problem('JOB_NOT_FOUND', (
        select coalesce(_missing, min(o.job_id::text))
            || ' is neither a job id nor a name in the graph'
        from unnest(others, jobq_private.ends_of(others)) as o (job_id, ended_as)
        where o.ended_as = 'gone'
    ));
end
$$;
