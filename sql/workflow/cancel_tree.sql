-- Purpose: Cancels a job and all connected jobs, and returns them.
-- Invariant: each as by cancel(), in one transaction. Locks all rows first, in the
-- order of ids, so that none of them ends meanwhile. Does not change finished jobs.
-- Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument scope: all (all connected jobs) or downstream (the job and those that wait for it)
-- Column cancelled_id: the id of a job that was live
-- Column outcome: cancelled or cancel_requested.
-- Example: select * from jobq.cancel_tree(:'waiting', 'ordered twice');
create or replace function jobq.cancel_tree(
    job_id uuid, reason text default null, scope text default 'all'
)
returns table (cancelled_id uuid, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _held uuid[];
begin
    perform jobq.get_job(cancel_tree.job_id);
    perform jobq_private.check_argument(case
        when (cancel_tree.scope in ('all', 'downstream')) is not true
        then 'scope must be all or downstream'
        when length(cancel_tree.reason) > 512 then 'reason must have at most 512 characters'
    end);
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id in (
            select d.job_id
            from jobq_private.tree(
                cancel_tree.job_id, case cancel_tree.scope when 'all' then 'all' else 'down' end
            ) as d (job_id)
        )
        order by j.job_id
        for update
    );
    return query
    select c.job_id, c.outcome from jobq_private.cancel_jobs(_held, cancel_tree.reason) as c;
end
$$;
grant execute on function jobq.cancel_tree to jobq_producer, jobq_operator;
