-- Purpose: Ends an attempt as succeeded: returns true the first time, false when repeated; raises
-- an error if the lease is lost.
-- Invariant: a lease that has expired is lost only when recover() has ended the attempt. A job
-- with keep_succeeded '0' leaves no trace, so a repeated call raises JQ001.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006. Never: INVALID_ARGUMENT.
-- Returns: true; false if the same attempt has already completed the job, as after a commit with
-- unknown outcome.
-- Example: select jobq.complete(:'running', 1, '{"message_id": "42"}');
create or replace function jobq.complete(job_id uuid, attempt integer, result jsonb default null)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _outcome text;
begin
    select c.outcome into _outcome
    from jobq.complete_many(
        array[complete.job_id], array[complete.attempt],
        case when complete.result is not null then jsonb_build_array(complete.result) end
    ) as c;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(complete.job_id, complete.attempt);
    end if;
    return _outcome = 'succeeded';
end
$$;
grant execute on function jobq.complete to jobq_worker;
