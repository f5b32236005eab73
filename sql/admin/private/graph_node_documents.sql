-- Purpose: jobs as nodes, for show_graph(), ordered by id.
-- Invariant: reads only; omits deleted jobs.
create or replace function jobq_private.graph_node_documents(job_ids uuid[])
returns jsonb language sql stable as $$
    select coalesce(jsonb_agg(d order by d.job_id), '[]')
    from (
        select j.job_id, n.name, j.kind, j.queue, j.state, j.attempts, j.max_attempts, j.created_at,
            j.run_at, j.claimed_at as started_at, j.finished_at, f.last_error_code as error_code,
            f.last_error as error, j.batch_id, w.waits_for,
            h.held_up_by
        from unnest(graph_node_documents.job_ids) as g (job_id)
        left join jobq_private.holders_among(graph_node_documents.job_ids) as h
            on h.job_id = g.job_id
        cross join lateral (
            select l.* from jobq.job as l where l.job_id = g.job_id and l.finished_at is null
            union all
            select a.* from jobq.job as a
            where a.job_id = g.job_id
            and a.finished_at >= jobq_private.id_time(g.job_id) - interval '1 day'
        ) as j
        left join jobq_private.node as n on n.job_id = j.job_id
        left join lateral (select j.last_error_code, j.last_error) as f
            on j.state in ('dead', 'cancelled', 'retrying')
        cross join lateral (
            select count(*) as waits_for from jobq_private.edge as e
            where j.state = 'blocked' and e.child = j.job_id and e.is_open
        ) as w
    ) as d
$$;
