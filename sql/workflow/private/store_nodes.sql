-- Purpose: store the jobs of a graph with their edges.
-- Invariant: the edges were checked. Adds a row to pending for jobs with existing
-- parents, as attach_jobs() does. The jobs of a schedule's graph, whose only existing
-- parent is the schedule's job, have that job's slot.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Never: DEDUP_CONFLICT.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], ids uuid[], others uuid[], arrows jobq_private.arrow[],
    graph_id uuid, is_checked boolean
)
returns void
language plpgsql
as $$
declare
    _size constant integer := cardinality(ids);
    _all constant uuid[] := ids || others;
    _jobs jobq_private.new_job[];
    _slot_at constant timestamptz := (
        select j.slot_at
        from jobq_private.job as j
        where store_nodes.is_checked and j.job_id = others[1]
    );
    _arrow jobq_private.arrow;
    _named integer;
begin
    _jobs := jobq_private.node_jobs(nodes);
    for _n in 1 .. _size loop
        _jobs[_n].job_id := ids[_n];
        _jobs[_n].slot_at := _slot_at;
        _jobs[_n].is_awaited := false;
    end loop;
    foreach _arrow in array arrows loop
        if _arrow.child <= _size then
            _jobs[_arrow.child].callback_of := store_nodes.graph_id;
        end if;
        if _arrow.parent <= _size then
            _jobs[_arrow.parent].is_awaited := true;
        end if;
    end loop;
    perform jobq_private.store_jobs(_jobs, is_checked);
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    if _named < _size then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a name is already in the graph: another job has just added it'
        );
    end if;
    insert into jobq_private.edge (child, parent, after_failure)
    select
        _all[a.child], _all[a.parent],
        coalesce(
            j.after_failure,
            case when a.child > _size then (
                select min(e.after_failure)
                from jobq_private.edge as e
                where e.child = _all[a.child]
            ) end,
            'cancel'
        )
    from unnest(store_nodes.arrows) as a
    left join unnest(_jobs) as j on j.ordinal = a.child;
    insert into jobq_private.pending (about, id)
    select distinct 'child', _all[a.child]
    from unnest(store_nodes.arrows) as a
    where a.parent > _size;
end
$$;
