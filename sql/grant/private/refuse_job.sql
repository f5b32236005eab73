-- Purpose: say why the policy of new jobs lets a job not pass; it is asked last, and never returns.
-- Invariant: a policy's own refusal has neither a code nor words for who reads it. Raises: 42501.
create or replace function jobq_private.refuse_job(queue text, kind text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('ENQUEUE_DENIED', format(
        'queue %s, kind %s', refuse_job.queue, refuse_job.kind
    ));
    return false;
end
$$;
