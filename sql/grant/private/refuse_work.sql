-- Purpose: raise the error that explains why the policy of steps and chunks of streams refuses
-- those of a job; evaluated last, and never returns.
-- Invariant: as refuse_job(). Raises: 42501.
create or replace function jobq_private.refuse_work(job_id uuid)
returns boolean language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.raise_error('QUEUE_DENIED', format('job_id %s', refuse_work.job_id));
    return false;
end
$$;
