-- Purpose: add the graph of a schedule behind the job of a slot.
-- Invariant: what waits for no job of the graph waits for that one. Nothing that a new job may
-- be refused for is checked again. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, GRAPH_CYCLE, JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND,
-- BATCH_ENDED, ILLEGAL_STATE, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID, QUEUE_FULL.
create or replace function jobq_private.hang_graph(job_id uuid, graph jsonb)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select a.job_id
    from jobq_private.add_graph(
        jsonb_build_object('jobs', (
            select jsonb_agg(case
                when coalesce(nullif(n.node -> 'after', 'null'), '[]') = '[]'
                then n.node || jsonb_build_object('after', array[hang_graph.job_id])
                else n.node
            end order by n.place)
            from jsonb_array_elements(hang_graph.graph -> 'jobs')
                with ordinality as n (node, place)
        )),
        hang_graph.job_id, true
    ) as a
$$;

revoke all on function jobq_private.hang_graph from public;

comment on function jobq_private.hang_graph is
'Adds the graph of a schedule behind the job of a slot.';
