-- Purpose: end failed attempts: retrying while attempts are left, else dead; cancelled
-- where that was asked for meanwhile.
-- Invariant: rows are found by the primary key alone, whatever the statistics say, and
-- locked in the order of their ids, so batches cannot deadlock; only
-- the attempt that holds the lease counts. Attempts are recorded, lanes left, and those that are
-- dead or cancelled moved into the archive, in one step each, as triggers do for a job that changes
-- alone; the archive's foreign key checks the change. An expired lease retries at once, anything
-- else after its backoff.
-- Raises: nothing of its own.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.settle_failures(
    failures jobq_private.failure[], is_expiry boolean
)
returns table (job_id uuid, attempt integer, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _max_expiries constant integer := (select g.max_expiries from jobq_private.setting as g);
    _ids constant uuid[] := array(select f.job_id from unnest(settle_failures.failures) as f);
    _noted constant text := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    _noted_at constant timestamptz := jobq_private.noted_at(_noted);
    _jobs uuid[];
    _attempts integer[];
    _states text[];
    _has_places boolean;
    _outcome text;
begin
    perform set_config('jobq.notes_attempts', _noted, true);
    with held as materialized (
        select
            j.job_id, j.kind, j.queue, j.delivery_version, j.attempt - j.uncounted as spent,
            j.claimed_at, j.worker,
            f.error, f.error_code, f.retry_in, f.details,
            case
                when j.cancel_requested_at is not null then 'cancelled'
                when not coalesce(f.retryable, true) then 'dead'
                when j.attempt - j.uncounted >= j.max_attempts then 'dead'
                when settle_failures.is_expiry and j.expiries + 1 >= _max_expiries
                then 'dead'
                else 'retrying'
            end as outcome,
            num_nonnulls(j.lane_id, j.place) > 0 as has_place
        from unnest(settle_failures.failures) as f
        join jobq_private.job as j
            on j.job_id = any(_ids)
            and j.job_id = f.job_id
            and j.attempt = f.attempt
            and j.lease_expires_at is not null
        order by j.job_id
        for update of j
    ),
    changed as (
        update jobq_private.job as j
        set
            state = case h.outcome when 'retrying' then h.outcome else j.state end,
            expiries = j.expiries + settle_failures.is_expiry::integer,
            last_error = left(h.error, 512),
            last_error_code = left(h.error_code, 128),
            last_error_details = h.details,
            run_at = case
                when h.outcome <> 'retrying' then j.run_at
                when settle_failures.is_expiry then clock_timestamp()
                else clock_timestamp() + coalesce(h.retry_in, (
                    select jobq.backoff(
                        p.retry_strategy, p.retry_initial_delay, p.retry_max_delay,
                        p.retry_jitter, h.spent
                    )
                    from jobq_private.retry_policy_for(
                        h.kind, h.queue, h.delivery_version
                    ) as p
                ))
            end
        from held as h
        where j.job_id = any(_ids)
        and j.job_id = h.job_id
        returning
            j.job_id, j.attempt, h.outcome, h.has_place, h.claimed_at, h.worker,
            j.last_error_code, j.last_error, j.last_error_details, j.region,
            case when j.delivery_version is not null then j.kind end as endpoint
    ),
    noted as (
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        select
            c.job_id, c.attempt, c.outcome, c.claimed_at, _noted_at, c.worker,
            case when c.outcome <> 'cancelled' then c.last_error_code end,
            case when c.outcome <> 'cancelled' then c.last_error end,
            case when c.outcome <> 'cancelled' then c.last_error_details end,
            c.endpoint, c.region
        from changed as c
    )
    select
        array_agg(c.job_id), array_agg(c.attempt), array_agg(c.outcome), bool_or(c.has_place)
    into _jobs, _attempts, _states, _has_places
    from changed as c;
    perform set_config('jobq.notes_attempts', '', true);
    if _has_places then
        perform jobq_private.leave_lanes(_jobs, _states);
    end if;

    foreach _outcome in array '{dead,cancelled}'::text[] loop
        perform jobq_private.archive_jobs(
            array_agg(s.job_id), array_agg(s.attempt), _outcome, null, false
        )
        from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state)
        where s.state = _outcome
        having count(*) > 0;
    end loop;
    return query
    select s.job_id, s.attempt, s.state
    from unnest(_jobs, _attempts, _states) as s (job_id, attempt, state);
end
$$;

revoke all on function jobq_private.settle_failures from public;

comment on function jobq_private.settle_failures is
'Ends failed attempts as retrying, dead or cancelled.';
