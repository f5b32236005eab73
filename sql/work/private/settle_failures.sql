-- Purpose: end failed attempts: retrying while attempts are left, else dead; cancelled if that
-- was requested. An expired lease retries at once, other failures after their backoff.
-- Invariant: jobs are locked in the order of their ids, so batches cannot deadlock. Only the
-- attempt that holds the lease counts. Triggers record the attempts, as for a raw update.
create or replace function jobq_private.settle_failures(
    failures jobq_private.failure[], is_expiry boolean default false
)
returns table (job_id uuid, attempt integer, state text) language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_nestloop = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    _max_expiries constant integer := (select g.max_expiries from jobq_private.setting as g);
    _ids constant uuid[] := array(select f.job_id from unnest(settle_failures.failures) as f);
    _jobs uuid[];
    _attempts integer[];
    _states text[];
begin
    with locked as materialized (
        select
            j.job_id, f.error, f.error_code, f.details, a.max_attempts, case
                when j.cancel_requested_at is not null then 'cancelled'
                when not coalesce(f.retryable, true) then 'dead'
                when j.attempt - j.uncounted >= a.max_attempts then 'dead'
                when settle_failures.is_expiry and j.expiries + 1 >= _max_expiries then 'dead'
                else 'retrying'
            end as outcome, case
                when settle_failures.is_expiry then '0'
                else coalesce(f.retry_in, (
                    select jobq_private.backoff(
                        p.retry_strategy, p.retry_initial_delay, p.retry_max_delay,
                        p.retry_jitter, j.attempt - j.uncounted
                    )
                    from jobq_private.retry_policy_for(
                        j.kind, j.queue, j.delivery_version
                    ) as p
                ))
            end as retry_in
        from unnest(settle_failures.failures) as f
        join jobq_private.job as j
            on j.job_id = any(_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        cross join lateral (
            select jobq_private.max_attempts_for(
                j.kind, j.queue, j.created_at, j.max_attempts
            )
        ) as a (max_attempts)
        order by j.job_id
        for update of j
    ),
    changed as (
        update jobq_private.job as j
        set
            state = case when l.outcome = 'retrying' then l.outcome else j.state end,
            max_attempts = l.max_attempts,
            expiries = j.expiries + settle_failures.is_expiry::integer,
            last_error = left(l.error, 512),
            last_error_code = left(l.error_code, 128),
            last_error_details = l.details,
            run_at = case
                when l.outcome = 'retrying' then clock_timestamp() + l.retry_in else j.run_at
            end
        from locked as l
        where j.job_id = any(_ids)
        and j.job_id = l.job_id
        returning j.job_id, j.attempt, l.outcome
    )
    select array_agg(c.job_id), array_agg(c.attempt), array_agg(c.outcome)
    into _jobs, _attempts, _states
    from changed as c;

    -- What has ended moves into the archive as a set, and not one by one.
    perform jobq_private.archive_jobs(array_agg(s.job_id), array_agg(s.attempt), s.state)
    from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state)
    where s.state <> 'retrying'
    group by s.state;
    return query select s.* from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state);
end
$$;
