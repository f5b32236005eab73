-- Purpose: whether an idempotency key can pass to another job: its retention is over and its job
-- not live, or the job has failed and its kind allows reuse.
create or replace function jobq_private.is_key_free(
    kind text, job_id uuid, created_at timestamptz
)
returns boolean language plpgsql stable as $$
begin
    if created_at < now() - (select g.key_retention from jobq_private.setting as g) then
        return not exists (
            select from jobq_private.job as j where j.job_id = is_key_free.job_id
        );
    end if;
    return exists (
        select from jobq_private.job_archive as a
        where a.job_id = is_key_free.job_id
        and a.finished_at >= jobq_private.id_time(is_key_free.job_id) - interval '1 day'
        and a.state in ('dead', 'cancelled')
    )
    and (select s.reuse_key_after_failure from jobq_private.settings_for(kind, null) as s);
end
$$;
