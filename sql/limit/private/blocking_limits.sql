-- Purpose: the limits that prevent a job from starting now, with their reasons: held,
-- rate_limited, budget, ordered_behind, queue_busy, kind_busy or key_busy; no row if the job may
-- start.
-- Invariant: exact only for a caller that has locked the limits.
create or replace function jobq_private.blocking_limits(job jobq_private.job, now timestamptz)
returns table (reason text, explanation text) language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    _cost constant numeric := coalesce(job.cost, 1);
    _scopes constant jobq_private.scope[] := array(select l from jobq_private.job_limits(job) as l);
begin
    return query
    select b.reason, b.explanation
    from jobq_private.check_limits(_scopes, blocking_limits.now) as r
    cross join lateral (
        select concat_ws(', ', coalesce('kind ' || r.kind, 'queue ' || r.queue),
            'concurrency_key ' || r.concurrency_key) as name
    ) as n
    left join lateral (
        select nullif(coalesce(r.first_job_id, (
            select w.job_id
            from jobq_private.job as w
            where w.queue = job.queue and w.key_id = job.key_id
            and w.state in ('queued', 'retrying')
            and w.run_at <= blocking_limits.now
            and (
                w.priority > job.priority
                or w.priority = job.priority and (w.run_at, w.job_id) < (job.run_at, job.job_id)
            )
            limit 1
        )), job.job_id) as job_id
    ) as f on r.is_ordered
    cross join lateral (
        values
        ('held', r.held_until is not null, format(
            '%s, held until %s',
            concat_ws(': ', case
                when r.concurrency_key is not null
                then format('queue %s, concurrency_key %s', job.queue, r.concurrency_key)
                else format('kind %s in queue %s', job.kind, job.queue)
            end, r.hold_reason),
            case
                when isfinite(r.held_until) then date_trunc('second', r.held_until)::text
                else 'it is released'
            end
        )),
        ('rate_limited', r.rate_opens_at is not null, format(
            '%s: the next starts at %s', n.name, date_trunc('second', r.rate_opens_at)
        )),
        ('budget', _cost > r.budget_left, format(
            '%s: %s of %s reserved or spent, this job costs %s; %s', n.name, r.spent, (r.budget).amount, _cost,
            case
                when _cost > (r.budget).amount then 'raise the budget, or cancel the job'
                else format('the next period begins at %s', date_trunc('second', r.period_end))
            end
        )),
        ('ordered_behind', f.job_id is not null, format('%s: job %s goes first', n.name, f.job_id)),
        (
            case
                when r.concurrency_key is not null then 'key_busy'
                when r.kind is not null then 'kind_busy'
                else 'queue_busy'
            end,
            r.slots = 0,
            n.name || format(': %s at once, and so many run', r.max_running) || coalesce(': ' || (
                select string_agg(format('job %s on %s', h.job_id, h.worker), ', ')
                from (
                    select o.job_id, o.worker
                    from jobq_private.job as o
                    where r.slots = 0 and o.slot is not null
                    and case
                        when r.kind is null then o.queue = r.queue and o.key_id = r.limit_id
                        else o.kind = r.kind and o.concurrency_key = r.concurrency_key
                    end
                    limit 3
                ) as h
            ), '')
        )
    ) as b (reason, is_so, explanation)
    where b.is_so
    order by r.n;
end
$$;
