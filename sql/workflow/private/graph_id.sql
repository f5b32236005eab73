-- Purpose: the graph of a live job; a new one for null, or if it has none.
-- Invariant: a job without a graph becomes a node of its new graph, named by its kind.
-- Raises: JQ001, JQ002. Never: NULL_ARGUMENT.
create or replace function jobq_private.graph_id(graph_of uuid)
returns uuid language plpgsql as $$
declare
    _new_id constant uuid := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _graph_id uuid;
    _job jobq.job;
begin
    if graph_of is null then
        return _new_id;
    end if;
    _job := jobq.get_job(graph_of);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it can add no more jobs to its graph', graph_of, _job.state)
    end);
    insert into jobq_private.node as n (job_id, graph_id, name)
    values (graph_of, _new_id, _job.kind)
    on conflict on constraint node_pkey do nothing;
    select n.graph_id into _graph_id from jobq_private.node as n where n.job_id = graph_of;
    return _graph_id;
end
$$;
