-- Purpose: enqueue_graph(), also for a schedule, whose graph was checked when it was
-- declared.
-- Invariant: as enqueue_graph(). Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006,
-- JQ010.
create or replace function jobq_private.add_graph(graph jsonb, graph_of uuid, is_checked boolean)
returns table (name text, job_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    _nodes jsonb := jobq_private.graph_nodes(add_graph.graph);
    _graph_id constant uuid := jobq_private.graph_id(add_graph.graph_of);
    _names text[];
    _ids uuid[];
    _others uuid[];
    _arrows jobq_private.arrow[];
    _size constant integer := jsonb_array_length(_nodes);
begin
    select array_agg(n.node ->> 'name' order by n.place), array_agg(jobq_private.new_id(g.shard_id))
    into _names, _ids
    from jsonb_array_elements(_nodes) with ordinality as n (node, place)
    cross join jobq_private.setting as g;
    _others := jobq_private.graph_others(_nodes, _names, _graph_id);
    _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    -- New jobs between two blocked jobs: concurrent calls could together create a
    -- cycle. So these calls run one at a time until the commit, and then read the edges
    -- again.
    if exists (select from unnest(_arrows) as a where a.child > _size) and exists (
        select from unnest(_arrows) as a
        join jobq_private.job as j on j.job_id = _others[a.parent - _size]
        where a.parent > _size and a.child <= _size and j.state = 'blocked'
    ) then
        if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
            perform jobq_private.raise_error(
                'INVALID_ARGUMENT',
                'before requires the isolation level read committed'
            );
        end if;
        perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
        _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    end if;
    perform jobq_private.check_arrows(_arrows, _names || array(
        select coalesce(n.name, o.job_id::text)
        from unnest(_others) with ordinality as o (job_id, place)
        left join jobq_private.node as n on n.job_id = o.job_id
        order by o.place
    ));
    perform jobq_private.hold_children(array(
        select _others[a.child - _size] from unnest(_arrows) as a
        where a.child > _size and a.parent <= _size
    ));
    perform jobq_private.store_nodes(
        _nodes, _names, _ids, _others, array(
            select a from unnest(_arrows) as a where a.child <= _size or a.parent <= _size
        ), _graph_id, add_graph.is_checked
    );
    return query
    select n.name, n.job_id from unnest(_names, _ids) as n (name, job_id);
end
$$;
