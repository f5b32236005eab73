-- Purpose: whether a claim must skip a job because its endpoint is paused; the job is
-- then postponed, once, instead of claimed.
-- Invariant: job_transition() calls this only for deliveries. A postponed job does
-- not slow down later claims. The endpoint's row decides: resume_endpoint() locks it,
-- so it sees every postponed job; while another transaction changes the row, the job
-- only stays where it is. A login with some queues cannot lock it, so resume_endpoint()
-- updates the row of kind_queue too. The newest test of the endpoint passes.
create or replace function jobq_private.park_delivery(
    job_id uuid, endpoint text, run_at timestamptz
)
returns boolean language plpgsql as $$
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
    if not found then
        perform from jobq_private.kind_queue as o
        where o.kind = park_delivery.endpoint
        for share skip locked;
        if found then  -- a new snapshot: it may have been resumed just before
            perform from jobq_private.endpoint as e
            where e.endpoint = park_delivery.endpoint and e.paused_at is not null;
        end if;
    end if;
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
