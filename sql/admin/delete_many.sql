-- Purpose: Deletes waiting or finished jobs with their history, and returns their ids.
-- Invariant: all or none; no running job. Idempotency keys become free. Clients that wait for one
-- get an error. Raises: 22004, 22023, 42501, JQ001, JQ002.
-- Argument job_ids: these jobs, waiting or ended; none may run. Other filters apply too.
-- Argument state: only jobs in this state: blocked, queued, retrying, succeeded, dead or
-- cancelled; null means those that wait, and with job_ids all.
-- Argument max_jobs: maximum number, 1 to 100000, the oldest first.
-- Returns: the ids of the jobs.
-- Example: select * from jobq.delete_many(queue => 'default', dry_run => true);
create or replace function jobq.delete_many(
    job_ids uuid[] default null, queue text default null, kind text default null,
    metadata jsonb default null, state text default null, max_jobs integer default 1000,
    dry_run boolean default false, reason text default null
)
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _chosen uuid[];
begin
    _chosen := jobq_private.choose_jobs(
        delete_many.job_ids, delete_many.queue, delete_many.kind, delete_many.metadata,
        delete_many.max_jobs, delete_many.dry_run, delete_many.reason,
        case
            when num_nonnulls(delete_many.state, delete_many.job_ids) > 0
            then '{blocked,queued,retrying,succeeded,dead,cancelled}'::text[]
            else '{blocked,queued,retrying}'
        end,
        delete_many.state
    );
    perform jobq_private.check_worked(_chosen);
    if not delete_many.dry_run then
        perform jobq_private.open_keys('{}', freed => array(
            select distinct j.key_id from jobq_private.job as j where j.job_id = any(_chosen)
        ));
        perform jobq_private.forget_jobs(_chosen);
        perform jobq_private.release_dead_keys(_chosen);
        perform jobq_private.record_audit('delete', c.job_id::text, delete_many.reason)
        from unnest(_chosen) as c (job_id);
    end if;
    return query select c.job_id from unnest(_chosen) as c (job_id);
end
$$;
grant execute on function jobq.delete_many to jobq_operator;
