-- Purpose: the limits, the hold and the jobs of one concurrency key, for show_queue(); with the
-- kinds of the queue, or of its waiting jobs of the key, that have limits for each key instead.
-- Invariant: a key of an undeclared queue has no limits. Counts at most 10,001 waiting jobs.
create or replace function jobq_private.key_document(
    queue text, concurrency_key text, max_rows integer
)
returns json language sql stable as $$
    with limited as materialized (
        select k.*, jobq_private.limit_id(null, k.kind, key_document.concurrency_key) as key_id
        from jobq_private.kind as k
        where num_nonnulls(k.key_max_running, k.key_rate_limit, k.key_budget, k.ordered) > 0
    )
    select row_to_json(d)
    from (
        select
            i.concurrency_key,
            case when q.ordered then 1 else coalesce(l.max_running, q.key_max_running) end as max_running,
            r.rate_limit, jobq_private.milliseconds(r.rate_period) as rate_period_ms, r.rate_burst,
            h.held_until is not null as is_held,
            nullif(h.held_until, 'infinity') as held_until, h.reason as hold_reason,
            (
                select count(*)
                from (
                    select from jobq_private.job as j
                    where j.queue = i.queue and j.state in ('queued', 'retrying')
                    and j.key_id = any(i.key_id || array(select k.key_id from limited as k))
                    limit 10001
                ) as w
            ) as waiting,
            jobq_private.key_runners(i.queue, i.concurrency_key, key_document.max_rows) as runners,
            (
                select coalesce(json_agg(c), '[]')
                from (
                    select k.kind,
                        case when k.ordered then 1 else k.key_max_running end as max_running,
                        k.key_rate_limit as rate_limit,
                        jobq_private.milliseconds(k.key_rate_period) as rate_period_ms,
                        k.key_rate_burst as rate_burst
                    from limited as k
                    where coalesce(k.queue, 'default') = i.queue or exists (
                        select from jobq_private.job as j
                        where j.queue = i.queue and j.key_id = k.key_id
                        and j.state in ('queued', 'retrying')
                    )
                    order by k.kind
                    limit key_document.max_rows
                ) as c
            ) as kinds
        from (
            select key_document.queue, key_document.concurrency_key,
                jobq_private.limit_id(
                    key_document.queue, null, key_document.concurrency_key
                ) as key_id
        ) as i
        left join jobq_private.queue as q on q.queue = i.queue
        left join jobq_private.key_limit as l
            on l.queue = i.queue and l.concurrency_key = i.concurrency_key
        left join lateral (
            select h.held_until, h.reason
            from jobq_private.limit_hold as h
            where h.limit_id = i.key_id and h.held_until > clock_timestamp()
            order by h.held_until desc, h.hold_id desc
            limit 1
        ) as h on true
        cross join lateral (
            select l.rate_limit, l.rate_period, l.rate_burst where l.rate_limit is not null
            union all
            select q.key_rate_limit, q.key_rate_period, q.key_rate_burst where l.rate_limit is null
        ) as r
    ) as d
$$;
