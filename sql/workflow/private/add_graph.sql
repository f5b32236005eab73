-- Purpose: enqueue_graph(), also for a schedule, whose graph was checked when it was declared.
-- Invariant: as enqueue_graph(). Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.add_graph(graph jsonb, graph_of uuid, is_checked boolean)
returns table (name text, job_id uuid) language plpgsql as $$
#variable_conflict use_column
declare
    _nodes constant jsonb := jobq_private.graph_nodes(add_graph.graph);
    _graph_id constant uuid := jobq_private.graph_id(add_graph.graph_of);
    _size constant integer := jsonb_array_length(_nodes);
    _names text[];
    _others uuid[];
    _arrows jobq_private.arrow[];
    _paths jobq_private.arrow[] := '{}'::jobq_private.arrow[];
    _ids uuid[];
begin
    select l.names, l.others, l.arrows into _names, _others, _arrows
    from jobq_private.graph_links(_nodes, _graph_id) as l;
    if exists (select from unnest(_arrows) as a where a.child > _size) then
        _paths := jobq_private.hold_children(_arrows, _others, _size);
    end if;
    perform jobq_private.check_arrows(_arrows || _paths, _names || array(
        select coalesce(n.name, o.job_id::text)
        from unnest(_others) with ordinality as o (job_id, place)
        left join jobq_private.node as n on n.job_id = o.job_id
        order by o.place
    ));
    _ids := jobq_private.store_nodes(
        _nodes, _names, _others, _arrows, _graph_id, add_graph.is_checked
    );
    return query
    select n.name, n.job_id from unnest(_names, _ids) as n (name, job_id);
end
$$;
