-- Purpose: the queues in which jobs have been due the longest, for more than 5 minutes, and
-- why the first job does not run.
-- Invariant: reads the first hundred jobs of each queue. 20 queues at most, of which it explains
-- five: a finding shows no more. Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.overdue_queues()
returns table (queue text, since timestamptz, reason text, explanation text) language sql stable
as $$
    select c.queue, c.oldest as since, e.reason, e.explanation
    from (
        select w.queue, w.oldest, row_number() over (order by w.oldest) as n
        from jobq_private.waiting_counts(100) as w
        where w.oldest < now() - interval '5 min'
        order by w.oldest
        limit 20
    ) as c
    left join lateral (
        select x.reason, x.explanation
        from (
            select h.job_id
            from jobq_private.head_jobs(c.queue, 101, statement_timestamp()) as h
            where c.n <= 5
            order by h.run_at
            limit 1
        ) as j
        cross join lateral jobq.explain(j.job_id) as x
        limit 1
    ) as e on true
    order by c.n
$$;
