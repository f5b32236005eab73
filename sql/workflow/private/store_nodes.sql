-- Purpose: store the jobs of a graph with their edges, and return their ids.
-- Invariant: the edges were checked. The jobs of a schedule's graph, whose only existing
-- parent is the schedule's job, have that job's slot.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010. Never: DEDUP_CONFLICT.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], others uuid[], arrows jobq_private.arrow[], graph_id uuid,
    is_checked boolean
)
returns uuid[] language plpgsql as $$
declare
    _size constant integer := cardinality(names);
    _ids constant uuid[] := array(
        select jobq_private.new_id(g.shard_id)
        from unnest(names) cross join jobq_private.setting as g
    );
    _all constant uuid[] := _ids || others;
    _slot_at constant timestamptz := (
        select j.slot_at
        from jobq_private.job as j
        where store_nodes.is_checked and j.job_id = others[1]
    );
    _jobs jobq_private.new_job[] := jobq_private.node_jobs(nodes);
    _node record;
    _named integer;
begin
    for _node in
        select
            p.place, array_agg(_all[a.parent]) filter (where a.child = p.place) as after,
            bool_or(a.parent = p.place) as is_awaited
        from unnest(arrows) as a
        cross join lateral (values (a.child), (a.parent)) as p (place)
        where p.place <= _size
        group by p.place
    loop
        _jobs[_node.place].after := _node.after;
        _jobs[_node.place].is_awaited := _node.is_awaited;
    end loop;
    for _n in 1 .. _size loop
        _jobs[_n].job_id := _ids[_n];
        _jobs[_n].slot_at := _slot_at;
        _jobs[_n].dedup := 'enqueue';
    end loop;
    perform jobq_private.store_jobs(_jobs, is_checked);
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(_ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    perform jobq_private.check_argument(case when _named < _size
        then 'a name is already in the graph: another job has just added it' end);
    insert into jobq_private.edge (child, parent, after_failure)
    select _all[a.child], _all[a.parent], coalesce((
        select min(e.after_failure) from jobq_private.edge as e where e.child = _all[a.child]
    ), 'cancel')
    from unnest(arrows) as a
    where a.child > _size;
    return _ids;
end
$$;
