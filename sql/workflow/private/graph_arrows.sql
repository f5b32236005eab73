-- Purpose: the edges of a graph by index: first the new jobs, then the existing ones.
-- Invariant: among existing jobs, only paths from a new job's child to a new job's
-- parent, so that check_arrows() sees every cycle.
create or replace function jobq_private.graph_arrows(nodes jsonb, names text[], others uuid[], graph_id uuid)
returns jobq_private.arrow[]
language plpgsql
stable
parallel safe
as $$
declare
    _size constant integer := cardinality(names);
    _arrows jobq_private.arrow[];
    _below jobq_private.arrow[];
begin
    with place as materialized (
        select n.name, n.place::integer as place
        from unnest(graph_arrows.names) with ordinality as n (name, place)
        union all
        select t.name, _size + o.place::integer
        from unnest(graph_arrows.others) with ordinality as o (job_id, place)
        left join jobq_private.node as d
            on d.job_id = o.job_id and d.graph_id = graph_arrows.graph_id
            and d.name <> all(graph_arrows.names)
        cross join lateral (
            select o.job_id::text as name union select d.name where d.name is not null
        ) as t
    ),
    given as materialized (
        select e.place::integer as place, e.node
        from jsonb_array_elements(graph_arrows.nodes) with ordinality as e (node, place)
    )
    select array_agg(row(w.child, w.parent)::jobq_private.arrow) into _arrows
    from (
        select g.place as child, p.place as parent
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'after', 'null'), '[]')
        ) as a (name)
        join place as p on p.name = a.name
        union
        select p.place, g.place
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'before', 'null'), '[]')
        ) as b (name)
        join place as p on p.name = b.name
    ) as w;
    if graph_arrows.others = '{}' or not exists (
        select from unnest(_arrows) as a where a.child > _size
    ) then
        return coalesce(_arrows, '{}');
    end if;
    select array_agg(row(_size + d.place, a.child)::jobq_private.arrow) into _below
    from (select distinct w.child from unnest(_arrows) as w where w.child > _size) as a
    cross join lateral jobq_private.tree(graph_arrows.others[a.child - _size], 'down') as t (job_id)
    join unnest(graph_arrows.others) with ordinality as d (job_id, place) on d.job_id = t.job_id
    where d.place <> a.child - _size;
    return _arrows || coalesce(_below, '{}');
end
$$;
