-- Purpose: the edges between these jobs, for show_graph().
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.graph_edge_documents(job_ids uuid[])
returns jsonb
language sql
stable
parallel safe
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'parent_id', e.parent,
        'child_id', e.child,
        'after_failure', e.after_failure,
        'is_open', e.is_open
    ) order by e.parent, e.child), '[]')
    from jobq_private.edge as e
    where e.child = any(graph_edge_documents.job_ids)
    and e.parent = any(graph_edge_documents.job_ids)
$$;
