-- Purpose: add the graph of a schedule after the job of a slot.
-- Invariant: jobs without parents in the graph wait for that job. Repeats no check of
-- new jobs.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, GRAPH_CYCLE, JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND,
-- BATCH_ENDED, ILLEGAL_STATE, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID, QUEUE_FULL.
create or replace function jobq_private.attach_graph(job_id uuid, graph jsonb)
returns void
language sql
as $$
    select a.job_id
    from jobq_private.add_graph(
        jsonb_build_object('jobs', (
            select jsonb_agg(case
                when coalesce(nullif(n.node -> 'after', 'null'), '[]') = '[]'
                then n.node || jsonb_build_object('after', array[attach_graph.job_id])
                else n.node
            end order by n.place)
            from jsonb_array_elements(attach_graph.graph -> 'jobs')
                with ordinality as n (node, place)
        )),
        attach_graph.job_id, true
    ) as a
$$;
