-- Purpose: which pauses hold up a waiting job, for explain(): of its queue, its kind, every
-- queue, or its endpoint; the events that it waits for; and the release that it needs.
-- Invariant: reads only; no row if nothing is paused, awaited or missing.
create or replace function jobq_private.explain_pauses(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'paused', format('%s since %s%s', p.what, date_trunc('second', p.paused_at),
        ': ' || p.pause_reason)
    from (
        select 'queue ' || q.queue, q.paused_at, q.pause_reason
        from jobq_private.queue as q
        where q.queue = job.queue
        union all
        select case k.kind when '*' then 'every queue' else 'kind ' || k.kind end,
            k.paused_at, k.pause_reason
        from jobq_private.paused_kind as k
        where k.kind in (job.kind, '*')
        union all
        select 'endpoint ' || e.endpoint, e.paused_at, e.pause_reason
        from jobq_private.endpoint as e
        where e.endpoint = job.kind and job.delivery_version is not null
        and e.test_job_id is distinct from job.job_id
    ) as p (what, paused_at, pause_reason)
    where p.paused_at is not null
    union all
    (
        select 'event', format('waits for %s since %s%s',
            coalesce('a person: ' || left(w.question, 200), w.event), date_trunc('second', w.since),
            case when w.deadline < w.since + interval '36000 days'
                then ', until ' || date_trunc('second', w.deadline) end)
        from jobq_private.waiter as w
        where w.job_id = job.job_id
        and w.deadline > clock_timestamp() and job.run_at > clock_timestamp()
        order by w.since
    )
    union all
    select 'release', format(
        'release %s started it; no worker of this release and queue %s was seen in the last minute',
        s.value #>> '{}', job.queue
    )
    from jobq_private.step as s
    where s.job_id = job.job_id and s.name = 'jobq:release' and not exists (
        select from jobq_private.live_worker as w
        where jobq_private.serves(w.queues, job.queue) and w.release = s.value #>> '{}'
    )
$$;
