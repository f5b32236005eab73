-- Purpose: in words, which limits, rates, holds and orders keep a waiting job from starting.
-- Invariant: reads only; no row when none does. Raises: nothing.
create or replace function jobq_private.explain_limits(job_id uuid)
returns table (reason text, explanation text)
language sql
stable
parallel safe
as $$
    select b.reason, case b.reason
        when 'held' then format('%s, held until %s', b.scope, case
            when isfinite(b.open_at) then date_trunc('second', b.open_at)::text
            else 'release_key() is called'
        end)
        when 'rate_limited' then format(
            '%s: the next starts at %s', b.scope, date_trunc('second', b.open_at)
        )
        when 'budget' then format(
            '%s; the next period begins at %s', b.scope, date_trunc('second', b.open_at)
        )
        when 'ordered_behind' then format('%s goes first', b.scope)
        when 'key_busy' then format('%s at once, and so many run: %s', b.scope, h.holders)
        else format('%s: as many run as its limit says', b.scope)
    end
    from jobq_private.job as j
    cross join lateral jobq_private.blocking_limits(j, clock_timestamp()) as b
    cross join lateral (
        select string_agg(format('job %s on %s', t.job_id, t.worker), ', ') as holders
        from (
            select o.job_id, o.worker
            from jobq_private.job as o
            where o.place is not null
            and case when b.scope like 'kind %'
                then o.kind = j.kind and o.concurrency_key = j.concurrency_key
                else o.queue = j.queue and o.lane_id = j.lane_id
            end
            limit 3
        ) as t
    ) as h
    where j.job_id = explain_limits.job_id
    and j.state in ('queued', 'retrying')
$$;
