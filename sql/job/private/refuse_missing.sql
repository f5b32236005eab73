-- Purpose: raise the error for an id that names no job.
-- Invariant: replaced by sql/wiring/refuse_missing.sql in a full installation. Raises: JQ001.
create or replace function jobq_private.refuse_missing(job_id uuid)
returns void language plpgsql stable as $$
begin
    perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', job_id));
end
$$;
