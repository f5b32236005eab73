-- Purpose: problems in the table of live jobs.
create or replace function jobq_private.jobs_health()
returns setof jobq_private.finding language sql set jit = off set enable_seqscan = off
set enable_bitmapscan = off as $$
    select 'leases', count(*) = 0, format('%s leases expired more than 10 s ago', count(*)), null
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    select 'queues', false, u.queue, null from jobq_private.unserved_queues() as u
    union all
    select 'kinds', false, format('%s in queue %s', u.kind, u.queue), null
    from jobq_private.unknown_kinds() as u
    union all
    select
        'waiting', false,
        format('queue %s: a job has been due since %s%s', o.queue,
            date_trunc('second', o.since), ' (' || o.reason || ': ' || o.explanation || ')'), null
    from jobq_private.overdue_queues() as o
    union all
    select
        'moves', false,
        format('%s jobs left for shard %s at %s and have not arrived', count(*),
            m.shard_id, date_trunc('second', min(m.moved_at))),
        format('finish it: jobq cluster move --database "$ROUTER" %s --to %s', s.shard_id, m.shard_id)
    from jobq_private.moved_job as m
    cross join jobq_private.setting as s
    where m.job is not null and m.moved_at < now() - interval '1 min'
    group by s.shard_id, m.shard_id
    union all
    (
        select
            'rows', false,
            format('job_id %s, which is %s%s', j.job_id, j.state, case
                when j.state = 'running' then ' without a lease'
                when j.state in ('queued', 'retrying') then ', but claims do not see it'
            end), null
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit 1000
    )
$$;
