-- Purpose: why a finished, running or blocked job is not waiting, for explain().
-- Invariant: reads only; no row for a waiting job.
create or replace function jobq_private.explain_state(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'finished', format(
        '%s at %s, after %s%s%s', job.state, job.finished_at,
        job.attempts || case job.attempts when 1 then ' attempt' else ' attempts' end,
        coalesce(': ' || case
            when job.state = 'succeeded' then null -- an error is that of an earlier attempt
            when job.state = 'cancelled' and job.cancel_reason is not null
                and starts_with(job.last_error_code, 'PARENT_') is not true
            then job.cancel_reason
            else coalesce(job.last_error_code || ' ', '') || job.last_error
        end, ''),
        case
            when job.state = 'dead' and job.last_error_code = 'LEASE_EXPIRED'
                and job.attempts < job.max_attempts
            then '; max_expiries leases have expired'
        end
    )
    where job.finished_at is not null
    union all
    select 'running', format(
        'attempt %s on %s since %s; lease %s %s%s', job.attempt, job.worker,
        date_trunc('second', job.claimed_at),
        case when job.lease_expires_at < clock_timestamp()
            then 'expired (maintain() will end the attempt)' else 'until' end,
        date_trunc('second', job.lease_expires_at),
        '; cancellation requested at ' || date_trunc('second', job.cancel_requested_at)
            || coalesce(': ' || job.cancel_reason, '')
    )
    where job.state = 'running'
    union all
    select b.* from jobq_private.explain_blocked(job) as b where job.state = 'blocked'
$$;
