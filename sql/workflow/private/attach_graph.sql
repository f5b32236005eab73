-- Purpose: add the graph of a schedule after its job.
-- Invariant: jobs without parents in the graph wait for that job. With is_checked, repeats no
-- check of new jobs. Raises: JQ005, JQ006, JQ010. Never: NULL_ARGUMENT, INVALID_ARGUMENT,
-- GRAPH_CYCLE, JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.attach_graph(job_id uuid, graph jsonb, is_checked boolean)
returns void language sql as $$
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
        attach_graph.job_id, attach_graph.is_checked
    ) as a
$$;
