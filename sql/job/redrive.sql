-- Purpose: Returns a dead or cancelled job to its queue, and returns its new state.
-- Invariant: its attempts start afresh, but the attempt number continues as the fencing token. It
-- is blocked if it must wait again for a job or for the end of its batch.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument max_attempts: how many attempts it gets from now on, 1 to 10000; null keeps the
-- number.
-- Returns: queued, or blocked if it must wait again.
-- Example: select jobq.redrive(:'dead');
create or replace function jobq.redrive(
    job_id uuid, latest boolean default false, max_attempts integer default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(redrive.job_id);
    _state text;
begin
    perform jobq_private.check_given('latest', num_nulls(redrive.latest));
    perform jobq_private.check_argument(case when redrive.max_attempts not between 1 and 10000
        then 'max_attempts must be from 1 to 10000' end);
    if _job.state in ('dead', 'cancelled') then
        perform from jobq_private.redrive_jobs(
            array[_job.job_id], array[_job.finished_at], redrive.latest
        );
        if found then
            update jobq_private.job as j
            set max_attempts = coalesce(redrive.max_attempts, j.max_attempts)
            where j.job_id = redrive.job_id
            returning j.state into _state;
        else
            perform jobq_private.refuse_redrive(_job);
            -- Somebody else has redriven it meanwhile: say what it is now.
            _job := jobq.get_job(_job.job_id);
        end if;
    end if;
    perform jobq_private.check_problem('ILLEGAL_STATE', case when _state is null then format(
        'job_id %s is %s; dead and cancelled jobs can be redriven', _job.job_id, _job.state
    ) end);
    return _state;
end
$$;
grant execute on function jobq.redrive to jobq_operator;
