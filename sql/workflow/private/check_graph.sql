-- Purpose: refuse the graph of a schedule that could not be added at each of its slots.
-- Invariant: its jobs depend only on each other, and none has the name of the
-- schedule's own job, its kind. Raises: 22004, 22023, JQ001, JQ005, JQ006.
create or replace function jobq_private.check_graph(graph jsonb, kind text)
returns void language plpgsql stable as $$
declare
    _nodes constant jsonb := jobq_private.graph_nodes(graph);
    _links record;
    _jobs jobq_private.new_job[];
begin
    select l.* into _links from jobq_private.graph_links(_nodes, null) as l;
    perform jobq_private.check_argument(case
        when kind = any(_links.names) or _links.others <> '{}'
            or jsonb_path_exists(_nodes, '$[*].batch_id')
        then 'a graph of a schedule may refer only to its own jobs, none named like the schedule''s kind, and to no batch'
        when jsonb_path_exists(_nodes, '$[*].keyvalue() ? (
            (@.key == "expires_at" || @.key == "run_at") && @.value != null
        )')
        then 'jobs of a schedule''s graph cannot have run_at or expires_at'
    end);
    perform jobq_private.check_arrows(_links.arrows, _links.names);
    _jobs := jobq_private.node_jobs(_nodes);
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].schedule_id := jobq_private.id_floor('epoch');
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
end
$$;
