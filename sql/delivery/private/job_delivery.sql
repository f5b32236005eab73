-- Purpose: a claim of a job whose endpoint is paused puts it aside, once, in place of leasing it.
-- Invariant: jobs that are no deliveries never come here. The job is out of the way of later
-- claims, and what was claimed is decided by the endpoint's row: who resumes it has that
-- row's lock, so that nothing is put aside that resume_endpoint() does not see; while
-- somebody changes the row, the job only stays where it is. The endpoint's last test goes.
-- Raises: nothing.
create or replace function jobq_private.park_delivery()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state <> 'running' or old.state = 'running' or not exists (
        select from jobq_private.endpoint as e
        where e.endpoint = old.kind
        and e.paused_at is not null
        and e.test_job_id is distinct from old.job_id
    ) then
        return new;
    end if;
    perform from jobq_private.endpoint as e
    where e.endpoint = old.kind and e.paused_at is not null
    for share skip locked;
    if found then
        insert into jobq_private.parked_job as p (job_id, endpoint, run_at)
        values (old.job_id, old.kind, old.run_at)
        on conflict on constraint parked_job_pkey do update
        set run_at = excluded.run_at
        where excluded.run_at <> jobq_private.parked_until();
        update jobq_private.job as j
        set run_at = jobq_private.parked_until()
        where j.job_id = old.job_id;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.park_delivery from public;

comment on function jobq_private.park_delivery is
'Puts a job aside that is claimed while its endpoint is paused.';

create or replace trigger job_delivery
before update on jobq_private.job
for each row
when (old.delivery_version is not null)
execute function jobq_private.park_delivery();
