-- Purpose: Returns graphs, batches and waits for events in progress as a JSON document.
-- Invariant: reads the newest 10,000 jobs of graphs, and the newest batches and waits,
-- each by a descent of an index. Raises: 22004, 22023.
-- Argument max_rows: at most so many of each, 1 to 1000.
-- Returns: a JSON object: graphs (graph_id, job_id of one unfinished job, name of that job, jobs,
-- unfinished), batches (batch_id, queue, opened_at, sealed_at, ended_at), waits (job_id, kind,
-- queue, event, since, deadline), all newest first.
-- Example: select jobq_http.show_workflows() -> 'graphs';
create or replace function jobq_http.show_workflows(max_rows integer default 50)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    perform jobq_private.check_count('max_rows', show_workflows.max_rows, 1, 1000);
    return json_build_object(
        'graphs', (
            select coalesce(json_agg(g order by g.graph_id desc), '[]')
            from (
                select n.graph_id, (array_agg(j.job_id order by j.job_id))[1] as job_id,
                    (array_agg(n.name order by j.job_id))[1] as name,
                    count(*) as jobs, count(j.job_id) as unfinished
                from (
                    select i.* from jobq_private.node as i order by i.job_id desc limit 10000
                ) as n
                left join jobq_private.job as j on j.job_id = n.job_id
                group by n.graph_id
                having count(j.job_id) > 0
                order by n.graph_id desc
                limit show_workflows.max_rows
            ) as g
        ),
        'batches', (
            select coalesce(json_agg(b order by b.opened_at desc), '[]')
            from (
                select a.batch_id, a.queue, a.opened_at, a.sealed_at, a.ended_at
                from jobq_private.batch as a
                order by a.opened_at desc
                limit show_workflows.max_rows
            ) as b
        ),
        'waits', (
            select coalesce(json_agg(w order by w.since desc), '[]')
            from (
                select v.job_id, j.kind, j.queue, v.event, v.since, v.deadline
                from (
                    select i.* from jobq_private.waiter as i
                    where i.question is null
                    order by i.since desc
                    limit show_workflows.max_rows
                ) as v
                join jobq_private.job as j on j.job_id = v.job_id
            ) as w
        )
    );
end
$$;
grant execute on function jobq_http.show_workflows to jobq_operator, jobq_reader;
