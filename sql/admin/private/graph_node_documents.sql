-- Purpose: jobs as nodes, for show_graph(), ordered by id.
-- Invariant: reads only; omits deleted jobs.
create or replace function jobq_private.graph_node_documents(job_ids uuid[])
returns jsonb
language sql
stable
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'job_id', j.job_id,
        'name', n.name,
        'kind', j.kind,
        'queue', j.queue,
        'state', j.state,
        'attempts', j.attempts,
        'max_attempts', j.max_attempts,
        'created_at', j.created_at,
        'run_at', j.run_at,
        'started_at', j.claimed_at,
        'finished_at', j.finished_at,
        'error_code', case when j.state in ('dead', 'cancelled', 'retrying') then j.last_error_code end,
        'error', case when j.state in ('dead', 'cancelled', 'retrying') then j.last_error end,
        'batch_id', j.batch_id,
        'waits_for', case when j.state = 'blocked' then (
            select count(*) from jobq_private.edge as e where e.child = j.job_id and e.is_open
        ) else 0 end,
        'held_up_by', case when j.state = 'blocked' then g.held_up_by end
    ) order by j.job_id), '[]')
    from unnest(
        graph_node_documents.job_ids,
        jobq_private.holders_among(graph_node_documents.job_ids)
    ) as g (job_id, held_up_by)
    cross join lateral (
        select l.* from jobq.job as l where l.job_id = g.job_id and l.finished_at is null
        union all
        select a.* from jobq.job as a
        where a.job_id = g.job_id
        and a.finished_at >= jobq_private.id_time(g.job_id) - interval '1 day'
    ) as j
    left join jobq_private.node as n on n.job_id = j.job_id
$$;
