-- Purpose: Forgets the contents of jobs that have arrived on another shard. Only for jobq_owner.
-- Invariant: which shard has them stays recorded. Raises: 22004.
-- Returns: how many were not confirmed before.
-- Example: select jobq_internal.confirm_jobs('{}');
create or replace function jobq_internal.confirm_jobs(job_ids uuid[])
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _confirmed bigint;
begin
    perform jobq_private.check_given('job_ids', num_nulls(confirm_jobs.job_ids));
    update jobq_private.moved_job as m
    set job = null
    where m.job_id = any(confirm_jobs.job_ids) and m.shard_id is not null and m.job is not null;
    get diagnostics _confirmed = row_count;
    if _confirmed > 0 then
        perform jobq_private.record_audit('move', _confirmed || ' jobs');
    end if;
    return _confirmed;
end
$$;
