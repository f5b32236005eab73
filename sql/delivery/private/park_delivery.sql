-- Purpose: whether a claim must leave a job alone, since its endpoint is paused; the job is then
-- put aside, once, in place of being leased.
-- Invariant: stamp_transition() asks for deliveries alone. The job is out of the way of later
-- claims, and what was claimed is decided by the endpoint's row: who resumes it has that
-- row's lock, so that nothing is put aside that resume_endpoint() does not see; while
-- somebody changes the row, the job only stays where it is. The endpoint's last test goes.
-- Raises: nothing.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean
language plpgsql
as $$
begin
    if not exists (
        select from jobq_private.endpoint as e
        where e.endpoint = park_delivery.endpoint
        and e.paused_at is not null
        and e.test_job_id is distinct from park_delivery.job_id
    ) then
        return false;
    end if;
    perform from jobq_private.endpoint as e
    where e.endpoint = park_delivery.endpoint and e.paused_at is not null
    for share skip locked;
    if found then
        insert into jobq_private.parked_job as p (job_id, endpoint, run_at)
        values (park_delivery.job_id, park_delivery.endpoint, park_delivery.run_at)
        on conflict on constraint parked_job_pkey do update
        set run_at = excluded.run_at
        where excluded.run_at <> jobq_private.parked_until();
        update jobq_private.job as j
        set run_at = jobq_private.parked_until()
        where j.job_id = park_delivery.job_id;
    end if;
    return true;
end
$$;
