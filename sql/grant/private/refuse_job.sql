-- Purpose: raise the error that explains why the policy of new jobs refuses a job;
-- evaluated last, and never returns.
-- Invariant: a policy's own refusal has neither a code nor a helpful message. Raises: 42501.
create or replace function jobq_private.refuse_job(queue text, kind text)
returns boolean language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.raise_error('ENQUEUE_DENIED', format(
        'queue %s, kind %s', refuse_job.queue, refuse_job.kind
    ));
    return false;
end
$$;
