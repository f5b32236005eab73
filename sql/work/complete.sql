-- Purpose: finish an attempt as succeeded.
-- Invariant: true once; false when this very attempt has completed the job before, as
-- after a commit whose outcome was unknown; anything else is a lost lease and changes
-- nothing.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Never: INVALID_ARGUMENT.
-- Returns: true; false when this very attempt has completed the job before.
-- Example: select jobq.complete(:'running', 1, '{"message_id": "42"}');
create or replace function jobq.complete(
    job_id uuid, attempt integer, result jsonb default null
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if jobq_private.settle_successes(
        array[complete.job_id], array[complete.attempt],
        case when complete.result is not null then jsonb_build_array(complete.result) end, false
    ) is null then
        return true;
    elsif exists (
        select from jobq.get_job(complete.job_id) as j
        where j.state = 'succeeded' and j.attempt = complete.attempt
    ) then
        return false;
    end if;
    perform jobq_private.refuse_attempt(complete.job_id, complete.attempt);
    return false;
end
$$;

revoke all on function jobq.complete from public;
grant execute on function jobq.complete to jobq_worker;

comment on function jobq.complete is
'Finishes an attempt as succeeded: true once, false when repeated, an error when the lease is lost.';
