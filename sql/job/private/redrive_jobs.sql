-- Purpose: put dead jobs back among the live ones that the caller has locked, and that have
-- neither a lane nor an idempotency key; one whose dedup key stands for another job stays.
-- Invariant: a statement for each step, whatever their number. What archive_redrive says of one
-- job holds here for each; the setting tells job_birth that they have the past they claim.
-- Raises: nothing.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[]
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _back uuid[];
    _queues text[];
begin
    perform set_config('jobq.redrives', 'on', true);
    with chosen as materialized (
        select c.job_id, c.finished_at
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    ),
    back as (
        insert into jobq_private.job (
            job_id, created_at, run_at, slot_at, lease, timeout, schedule_id, attempt,
            uncounted, max_attempts, priority, state, previous_state, region, queue, kind,
            dedup_key, dedup, last_error_code, last_error, last_error_details, metadata,
            payload, delivery_version, keep, is_awaited, batch_id
        )
        select
            a.job_id, a.created_at, now(), a.slot_at, a.lease, a.timeout, a.schedule_id,
            a.attempt, a.attempt, a.max_attempts, a.priority, 'queued', a.state, a.region,
            a.queue, a.kind, a.dedup_key, a.dedup,
            nullif(a.last_error_code, 'PARENT_FAILED'),
            case when a.last_error_code <> 'PARENT_FAILED' then a.last_error end,
            a.last_error_details, a.metadata, a.payload, a.delivery_version, a.keep, true,
            a.batch_id
        from chosen as c
        join jobq_private.job_archive as a
            on a.job_id = c.job_id and a.finished_at = c.finished_at and a.state = 'dead'
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key) where dedup is not null do nothing
        returning job_id, queue
    )
    select array_agg(b.job_id), array_agg(distinct b.queue order by b.queue)
    into _back, _queues
    from back as b;
    perform set_config('jobq.redrives', '', true);
    if _back is null then
        return;
    end if;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = c.job_id
    and a.finished_at = c.finished_at
    and exists (select from jobq_private.job as j where j.job_id = a.job_id);
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;

revoke all on function jobq_private.redrive_jobs from public;

comment on function jobq_private.redrive_jobs is
'Puts dead jobs that the caller has locked back among the live ones.';
