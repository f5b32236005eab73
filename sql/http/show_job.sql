-- Purpose: Returns one job, live or archived, or one recurring job, as a JSON document.
-- Invariant: reads only; ids of schedules and jobs never collide. Raises: 22004, 22023, JQ001.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument job_id: the job's id, or that of a recurring job's version.
-- Members return: job_document
-- Returns: a JSON object, with payload or input beside these; for a recurring job that of
-- show_schedule().
-- Example: select jobq_http.show_job(:'waiting');
create or replace function jobq_http.show_job(job_id uuid, vocabulary text default null)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (
        select from jobq_private.schedule as s where s.schedule_id = show_job.job_id
    ) then
        return jobq_http.show_schedule(show_job.job_id::text, show_job.vocabulary);
    end if;
    return jobq_private.job_document(
        jobq.get_job(show_job.job_id), show_job.vocabulary
    );
end
$$;
grant execute on function jobq_http.show_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
