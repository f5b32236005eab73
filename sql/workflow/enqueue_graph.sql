-- Purpose: Adds jobs with dependencies, all or none, and returns their names and ids.
-- Invariant: all or none. Refuses cycles. New jobs can become parents of blocked jobs of a
-- running graph: the rows of these are locked until the commit, so that none of them is released
-- meanwhile. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument graph: a JSON object with jobs, an array of 1 to 100000 objects. Each has a name, 1
-- to 256 characters, the members of enqueue_many() except keys, after: an array of names in the
-- graph, or of ids of other jobs, and before: an array of names in the running graph, or of ids
-- of other jobs, which must be blocked and then also wait for this one.
-- Argument graph_of: a live job whose graph these jobs join, as the one that its own handler
-- runs; null means a graph of their own.
-- Column name: the name of the job in the graph
-- Example: select * from jobq.enqueue_graph('{"jobs": [{"name": "a", "kind": "fetch"},
--     {"name": "b", "kind": "resize", "after": ["a"]}, {"name": "c", "kind": "report", "after": ["b"]}]}');
create or replace function jobq.enqueue_graph(graph jsonb, graph_of uuid default null)
returns table (name text, job_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select a.name, a.job_id
    from jobq_private.add_graph(enqueue_graph.graph, enqueue_graph.graph_of, false) as a;
end
$$;
grant execute on function jobq.enqueue_graph to jobq_producer, jobq_worker;
