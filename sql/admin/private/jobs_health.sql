-- Purpose: problems in the table of live jobs.
-- Raises: nothing. Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.jobs_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'leases', count(*) = 0, 'failure',
        format('%s leases expired more than 10 s ago', count(*)),
        'start a worker, or call maintain() every few seconds'
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    select
        'queues', count(*) = 0, 'failure',
        coalesce(
            'no live worker serves ' || jobq_private.listed(array_agg(u.queue order by u.queue)),
            'every queue with due jobs has a live worker'
        ),
        'start a worker for these queues, or call work() if their kinds are functions'
    from jobq_private.unserved_queue as u
    union all
    select
        'kinds', count(*) = 0, 'warning',
        coalesce(
            'no live worker has a handler for ' || jobq_private.listed(array_agg(
                format('%s in queue %s', u.kind, u.queue) order by u.kind, u.queue
            )),
            'every kind with due jobs has a worker that handles it'
        ),
        'start a worker with handlers, or drivers and keys, for these kinds'
    from jobq_private.unknown_kind as u
    union all
    select
        'waiting', count(*) = 0, 'warning',
        coalesce(
            jobq_private.listed(array_agg(
                format(
                    'queue %s: a job has been due since %s%s', w.queue,
                    date_trunc('second', w.oldest),
                    coalesce(format(' (%s: %s)', w.reason, w.explanation), '')
                ) order by w.oldest
            ), '; '),
            'no job has been due for 5 minutes'
        ),
        'resume the queue or kind, release the key, raise the limit, or start more workers;'
        ' jobq explain JOB_ID shows all reasons'
    from (
        select c.queue, c.oldest, e.reason, e.explanation
        from jobq_private.waiting_counts() as c
        left join lateral (
            select j.job_id
            from jobq_private.job as j
            where j.queue = c.queue and j.state in ('queued', 'retrying') and j.run_at = c.oldest
            limit 1
        ) as j on true
        left join lateral (
            select x.reason, x.explanation from jobq.explain(j.job_id) as x limit 1
        ) as e on j.job_id is not null
        where c.oldest < now() - interval '5 min'
        order by c.oldest
        limit 20
    ) as w
    union all
    select
        'rows', count(*) = 0, 'failure',
        case when count(*) = 0 then 'every live job is in a valid state'
            else format('%s live jobs bypassed the triggers, as %s', count(*), min(format(
                'job_id %s, which is %s%s', o.job_id, o.state,
                case
                    when o.state = 'running' then ' without a lease'
                    when o.state in ('queued', 'retrying') then ', but claims do not see it'
                end
            )))
        end,
        'maintain() repairs what it can; delete the others as jobq_owner, see operations'
    from (
        select j.job_id, j.state
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit 1000
    ) as o
$$;
