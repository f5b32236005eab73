-- Purpose: Stores the progress of the running attempt.
-- Raises: 22004, JQ001, JQ003, JQ005, JQ006.
-- Example: select jobq.set_progress(:'running', 1, '{"done": 50, "of": 100}');
create or replace function jobq.set_progress(job_id uuid, attempt integer, progress jsonb)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _problem constant text[] := jobq_private.value_problem(
        set_progress.progress, 65536, 64
    );
begin
    perform jobq_private.check_problem(_problem[1], 'progress: ' || _problem[2]);
    update jobq_private.job as j
    set progress = set_progress.progress
    where j.job_id = set_progress.job_id
    and j.attempt = set_progress.attempt
    and j.lease_expires_at is not null;
    if not found then
        perform jobq_private.refuse_attempt(set_progress.job_id, set_progress.attempt);
    end if;
end
$$;
grant execute on function jobq.set_progress to jobq_worker;
