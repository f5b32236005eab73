-- Purpose: cancel jobs that the caller has locked: waiting ones at once, running ones
-- by asking their workers.
-- Invariant: a fixed number of statements; waiting jobs move directly to the archive, whose
-- foreign key checks the change. Raises: nothing of its own.
create or replace function jobq_private.cancel_jobs(job_ids uuid[], reason text)
returns table (job_id uuid, outcome text) language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    _asked text[];
    _waiting uuid[];
    _attempts integer[];
begin
    with asked as (
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel_jobs.reason)
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is not null
        returning j.queue
    )
    select array_agg(distinct a.queue) into _asked from asked as a;
    perform jobq_private.notify('jobq_cancel', q) from unnest(_asked) as q;

    if cancel_jobs.reason is not null then
        update jobq_private.job as j
        set cancel_reason = cancel_jobs.reason
        where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    end if;
    select array_agg(j.job_id), array_agg(j.attempt) into _waiting, _attempts
    from jobq_private.job as j
    where j.job_id = any(cancel_jobs.job_ids) and j.lease_expires_at is null;
    if _waiting is not null then
        perform jobq_private.archive_jobs(_waiting, _attempts, 'cancelled');
    end if;
    insert into jobq_private.audit (action, subject, reason)
    select 'cancel', c.job_id::text, cancel_jobs.reason
    from unnest(cancel_jobs.job_ids) as c (job_id);
    return query
    select c.job_id, case when j.job_id is null then 'cancelled' else 'cancel_requested' end
    from unnest(cancel_jobs.job_ids) as c (job_id)
    left join jobq_private.job as j on j.job_id = c.job_id;
end
$$;
