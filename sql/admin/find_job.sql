-- Purpose: Returns the id of the job with an idempotency key of a kind, or null.
-- Invariant: a key outlives its job only as long as it is retained. Raises: 22004.
-- Returns: the job's id, or null.
-- Example: select jobq_internal.find_job('send_email', 'welcome-ada');
create or replace function jobq_internal.find_job(kind text, idempotency_key text)
returns uuid language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given(
        'kind and idempotency_key', num_nulls(find_job.kind, find_job.idempotency_key)
    );
    return (
        select k.job_id
        from jobq_private.idempotency_key as k
        where k.kind = find_job.kind and k.idempotency_key = find_job.idempotency_key
        and (
            k.created_at >= now() - (select g.key_retention from jobq_private.setting as g)
            or exists (select from jobq_private.job as j where j.job_id = k.job_id)
        )
    );
end
$$;
grant execute on function jobq_internal.find_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
