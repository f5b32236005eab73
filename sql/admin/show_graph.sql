-- Purpose: Returns a job and all connected jobs as a JSON document of nodes and edges.
-- Invariant: reads only. At most max_nodes jobs, the nearest ones; is_whole is true if these are
-- all. Edges run from the parent to the child. Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument max_nodes: maximum number of jobs, 1 to 10000.
-- Returns: an object with job_id, graph_id (null outside a graph), is_whole, nodes (each with
-- job_id, name, kind, queue, state, attempts, max_attempts, created_at, run_at, started_at,
-- finished_at, error_code and error of a job that is dead, cancelled or retrying, batch_id,
-- waits_for: the number of its open edges, and held_up_by: a job that it directly or indirectly
-- waits for and that waits for none itself, null if that job is not among these nodes) and edges
-- (each with parent_id, child_id, after_failure, is_open).
-- Example: select jsonb_array_length(jobq_internal.show_graph(:'waiting') -> 'nodes');
create or replace function jobq_internal.show_graph(job_id uuid, max_nodes integer default 1000)
returns jsonb language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    _ids uuid[];
begin
    perform jobq.get_job(show_graph.job_id);
    perform jobq_private.check_count('max_nodes', show_graph.max_nodes, 1, 10000);
    _ids := array(
        select t.job_id
        from jobq_private.tree(show_graph.job_id, 'all', show_graph.max_nodes + 1) as t (job_id)
    );
    return jsonb_build_object(
        'job_id', show_graph.job_id,
        'graph_id', (
            select n.graph_id from jobq_private.node as n where n.job_id = show_graph.job_id
        ),
        'is_whole', cardinality(_ids) <= show_graph.max_nodes,
        'nodes', jobq_private.graph_node_documents(_ids[:show_graph.max_nodes]),
        'edges', (
            select coalesce(jsonb_agg(d order by d.parent_id, d.child_id), '[]')
            from (
                select e.parent as parent_id, e.child as child_id, e.after_failure, e.is_open
                from jobq_private.edge as e
                where e.child = any(_ids[:show_graph.max_nodes])
                and e.parent = any(_ids[:show_graph.max_nodes])
            ) as d
        )
    );
end
$$;
grant execute on function jobq_internal.show_graph
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
