-- Purpose: raise the error for an id that names no job: that of a schedule has one of its own.
-- Invariant: replaces the core's function of this name. Raises: JQ001.
create or replace function jobq_private.refuse_missing(job_id uuid)
returns void language plpgsql stable parallel safe as $$
begin
    if exists (
        select from jobq_private.schedule as s where s.schedule_id = refuse_missing.job_id
    ) then
        perform jobq_private.raise_error('JOB_IS_RECURRING', format('job_id %s', job_id));
    end if;
    perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', job_id));
end
$$;
