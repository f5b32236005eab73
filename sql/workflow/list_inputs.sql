-- Purpose: Returns the outcomes of the jobs that a job waits for or has waited for.
-- Invariant: ordered by id, without the jobs that it has called; a finished parent is kept as
-- long as its children. Raises: 22004, JQ001.
-- Column parent_id: the job that was waited for
-- Column name: its name in the graph; null when it is in none, and when it is hidden
-- Column kind: its kind; null when it is gone or hidden
-- Column state: its state; gone if there is no record of it, for example after deletion; hidden
-- if the caller may not see its queue, or if it is gone and the caller may not see all queues
-- Column result: its result; null unless it has succeeded
-- Column after_failure: what happens to the waiting job if this one is dead or cancelled
-- Example: select parent_id, result from jobq_internal.list_inputs(:'running');
create or replace function jobq_internal.list_inputs(job_id uuid)
returns table (parent_id uuid, name text, kind text, state text, result jsonb, after_failure text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _unseen constant text := (
        select case
            when row_security_active('jobq_private.job') and not coalesce(h.any_of && '{*}', false)
            then 'hidden' else 'gone'
        end
        from jobq_private.held_queue as h
    );
begin
    perform jobq.get_job(list_inputs.job_id);
    return query
    select
        e.parent, case when coalesce(p.state, _unseen) <> 'hidden' then n.name end, p.kind,
        coalesce(p.state, _unseen), p.result, e.after_failure
    from jobq_private.edge as e
    left join lateral (
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent and j.finished_at is null
        union all
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent
        and j.finished_at >= jobq_private.id_time(e.parent) - interval '1 day'
    ) as p on true
    left join jobq_private.node as n on n.job_id = e.parent
    where e.child = list_inputs.job_id and e.after_failure not in ('call', 'detach')
    order by e.parent;
end
$$;
grant execute on function jobq_internal.list_inputs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
