-- Purpose: whether an idempotency key that stands for a job may pass to another one: the
-- key is past its retention and its job not live, or the job has failed and its kind says
-- that the key may be used again then.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.is_key_free(
    kind text, queue text, job_id uuid, created_at timestamptz
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if created_at < now() - (select g.key_retention from jobq_private.setting as g) then
        return not exists (
            select from jobq_private.job as j where j.job_id = is_key_free.job_id
        );
    end if;
    return jobq_private.has_failed(job_id) and (
        select s.reuse_key_after_failure
        from jobq_private.settings_for(is_key_free.kind, is_key_free.queue) as s
    );
end
$$;

revoke all on function jobq_private.is_key_free from public;

comment on function jobq_private.is_key_free is
'Says whether an idempotency key that stands for a job may pass to another one.';
