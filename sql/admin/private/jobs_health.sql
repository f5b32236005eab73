-- Purpose: problems in the table of live jobs.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.jobs_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
as $$
    select
        'leases', count(*) = 0, format('%s leases expired more than 10 s ago', count(*)), null::text
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    (select 'queues', false, u.queue, null from jobq_private.unserved_queue as u order by u.queue)
    union all
    (
        select 'kinds', false, format('%s in queue %s', u.kind, u.queue), null
        from jobq_private.unknown_kind as u
        order by u.kind, u.queue
    )
    union all
    (
        select
            'waiting', false,
            format('queue %s: a job has been due since %s%s', c.queue,
                date_trunc('second', c.oldest), format(' (%s: %s)', e.reason, e.explanation)),
            null
        from jobq_private.waiting_counts() as c
        left join lateral (
            select x.reason, x.explanation
            from (
                select j.job_id
                from jobq_private.job as j
                where j.queue = c.queue and j.state in ('queued', 'retrying')
                and j.run_at = c.oldest
                limit 1
            ) as j
            cross join lateral jobq.explain(j.job_id) as x
            limit 1
        ) as e on true
        where c.oldest < now() - interval '5 min'
        order by c.oldest
        limit 20
    )
    union all
    (
        select
            'rows', false,
            format('job_id %s, which is %s%s', j.job_id, j.state,
                case
                    when j.state = 'running' then ' without a lease'
                    when j.state in ('queued', 'retrying') then ', but claims do not see it'
                end),
            null
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit 1000
    )
$$;
