-- Purpose: whether a job ended as dead or cancelled.
-- Invariant: only the partitions from the day before the id's own time on are looked at.
-- Raises: nothing.
create or replace function jobq_private.has_failed(job_id uuid)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from jobq_private.job_archive as a
        where a.job_id = has_failed.job_id
        and a.finished_at >= jobq_private.id_time(has_failed.job_id) - interval '1 day'
        and a.state in ('dead', 'cancelled')
    );
end
$$;

revoke all on function jobq_private.has_failed from public;

comment on function jobq_private.has_failed is
'Says whether a job ended as dead or cancelled.';
