-- Purpose: store the jobs of a graph, with what they wait for.
-- Invariant: arrows were checked. A look is left for those that wait for others than these,
-- as follow() does. Those of a schedule, which wait for its job alone, are of that job's slot.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], ids uuid[], others uuid[], arrows jobq_private.arrow[],
    graph_id uuid, is_checked boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
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
    _named integer;
begin
    _jobs := jobq_private.node_jobs(nodes);
    if not is_checked then
        perform jobq_private.check_new_jobs(_jobs);
    end if;
    perform jobq_private.store_jobs(
        array(
            select jobq_private.as_node(
                j, case when w.child is not null then store_nodes.graph_id end,
                p.parent is not null, _slot_at
            )
            from unnest(_jobs) as j
            left join (
                select distinct a.child from unnest(store_nodes.arrows) as a
            ) as w on w.child = j.ordinal
            left join (
                select distinct a.parent from unnest(store_nodes.arrows) as a
            ) as p on p.parent = j.ordinal
            order by j.ordinal
        ),
        ids, is_checked
    );
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    if _named < _size then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a name is in the graph already: another job has added it just now'
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
    insert into jobq_private.look (about, id)
    select distinct 'child', _all[a.child]
    from unnest(store_nodes.arrows) as a
    where a.parent > _size;
end
$$;

revoke all on function jobq_private.store_nodes from public;

comment on function jobq_private.store_nodes is
'Stores the jobs of a graph, with what they wait for.';
