-- Purpose: Ends an attempt as cancelled, if cancellation was requested.
-- Invariant: only the attempt that holds the lease can. Raises: 22004, JQ001, JQ002, JQ003.
-- Example: select jobq.confirm_cancel(:'cancelling', 1);
create or replace function jobq.confirm_cancel(job_id uuid, attempt integer)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when (jobq_private.lock_attempt(job_id, attempt)).cancel_requested_at is null
        then format('job_id %s: no cancellation was requested', confirm_cancel.job_id)
    end);
    update jobq_private.job as j
    set state = 'cancelled'
    where j.job_id = confirm_cancel.job_id;
end
$$;
grant execute on function jobq.confirm_cancel to jobq_worker;
