-- Purpose: Returns dead and cancelled jobs of a tree to their queues, and returns their ids.
-- Invariant: each as by redrive(), all or none, in sets: jobs that wait for others are blocked
-- again, and succeeded jobs do not run again. Locks blocked jobs first: a concurrent cancellation
-- after a death is waited for, or sees the redrive. Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument job_id: any job of the tree; for downstream, the first job
-- Argument scope: failed (dead jobs, and jobs cancelled because of them), downstream (this job
-- and those that wait for it, if dead or cancelled) or all (all dead or cancelled jobs)
-- Returns: the ids of the redriven jobs.
-- Example: select * from jobq.redrive_tree(:'dead');
create or replace function jobq.redrive_tree(job_id uuid, scope text default 'failed')
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _all uuid[];
    _chosen uuid[];
    _ended timestamptz[];
    _back uuid[];
begin
    perform jobq.get_job(redrive_tree.job_id);
    perform jobq_private.check_argument(case
        when (redrive_tree.scope in ('failed', 'downstream', 'all')) is not true
        then 'scope must be failed, downstream or all'
    end);
    _all := array(
        select t.job_id
        from jobq_private.tree(redrive_tree.job_id, case redrive_tree.scope
            when 'downstream' then 'down' else 'all'
        end) as t (job_id)
    );
    perform from jobq_private.job as j
    where j.job_id = any(_all) and j.state = 'blocked'
    order by j.job_id
    for no key update;
    with chosen as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.job_id = any(_all)
        and (
            a.state = 'dead'
            or (
                a.state = 'cancelled'
                and (
                    redrive_tree.scope <> 'failed'
                    or a.last_error_code in ('PARENT_FAILED', 'PARENT_GONE')
                )
            )
        )
        order by a.job_id
        for update of a
    )
    select array_agg(c.job_id order by c.job_id), array_agg(c.finished_at order by c.job_id)
    into _chosen, _ended
    from chosen as c;
    if _chosen is null then
        return;
    end if;
    _back := array(select r.* from jobq_private.redrive_jobs(_chosen, _ended) as r (job_id));
    perform jobq_private.refuse_redrive(jobq.get_job(c.job_id))
    from unnest(_chosen) as c (job_id)
    where c.job_id <> all(_back)
    order by c.job_id;
    return query select b.job_id from unnest(_back) as b (job_id) order by b.job_id;
end
$$;
grant execute on function jobq.redrive_tree to jobq_operator;
