-- Purpose: the jobs of a graph as new jobs, without their parents.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.node_jobs(nodes jsonb)
returns jobq_private.new_job[] language sql stable as $$
    select jobq_private.read_records(
        null::jobq_private.new_job, 'jobs',
        (
            select jsonb_agg(n.node - '{name,after,before}'::text[] order by n.place)
            from jsonb_array_elements(node_jobs.nodes) with ordinality as n (node, place)
        ),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,after_failure,batch_id,cost}'
    )
$$;
