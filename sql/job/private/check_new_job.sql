-- Purpose: refuse a new job that is invalid under these settings.
-- Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_new_job(
    job jobq_private.new_job, settings jobq_private.settings
)
returns void
language plpgsql
stable
as $$
declare
    _problem constant text[] := jobq_private.new_job_problem(job, settings);
begin
    if _problem is not null then
        perform jobq_private.raise_error(
            _problem[1], format('job %s: %s', job.ordinal, _problem[2])
        );
    end if;
end
$$;
