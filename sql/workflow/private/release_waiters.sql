-- Purpose: make jobs due that wait for the events of these rows of pending, and wake their
-- queues. The end of a called job is the event job_ended:ID. Returns the rows to postpone.
-- Invariant: waits for no lock. Skips jobs that run, retry or have ended: they look for their
-- events themselves. The rows of waiters stay until the jobs have looked, except those that
-- settle_calls() has settled. A login with some queues releases only their jobs.
create or replace function jobq_private.release_waiters(
    pending jobq_private.pending[], queues text[]
)
returns bigint[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _events constant jobq_private.pending[] := array(
        select row(
            l.pending_id, l.about, case l.about when 'call' then _all else l.id end,
            coalesce(l.event, 'job_ended:' || l.id), l.beyond, l.has_passed, l.created_at, l.due_at
        )::jobq_private.pending
        from unnest(pending) as l
        -- a wait with one snapshot notes called jobs that live, too
        where l.about = 'event' or l.about = 'call' and (
            select true from jobq_private.job as j where j.job_id = l.id limit 1
        ) is null
    );
    -- Transactions that emit, end a called job or begin to wait do not see each other's rows.
    -- Tests this before it reads the waiters, so that these include the rows of those that ended.
    _open constant bigint[] := array(
        select l.pending_id from unnest(_events) as l
        where jobq_private.is_locked('expecting', hashtext(l.event) & 1023)
        or case l.about
            when 'call' then l.created_at >= now()  -- this transaction has ended the job
            else jobq_private.is_locked('emitting', hashtext(l.event) & 1023)
        end
    );
    _waits jobq_private.waiter[];
    _held uuid[];
    _due uuid[];
begin
    if _events = '{}' then
        return '{}'::bigint[];
    end if;
    _waits := array(
        select w
        from unnest(_events) as l
        join jobq_private.waiter as w on w.event = l.event and l.id in (_all, w.job_id)
        -- by the index, whatever the statistics of tables say that have just been empty
        where w.event = any(array(select o.event from unnest(_events) as o))
        and (select j.state = 'queued' and j.run_at > clock_timestamp()
            from jobq_private.job as j where j.job_id = w.job_id)
        and (l.about = 'call' or exists (
            select from jobq_private.event as e
            where e.event = l.event and e.job_id in (l.id, _all)
        ))
    );
    _held := array(
        select j.job_id from jobq_private.job as j
        where j.job_id = any(array(select w.job_id from unnest(_waits) as w))
        and j.state = 'queued' and (queues is null or j.queue = any(queues))
        order by j.job_id
        for no key update skip locked
    );
    _due := array(
        select w.job_id
        from unnest(_waits) as w
        where not w.needs_all and w.job_id in (select h from unnest(_held) as h)
        union
        select s from unnest(jobq_private.settle_calls(array(
            select w.job_id from unnest(_waits) as w
            where w.needs_all and w.job_id in (select h from unnest(_held) as h)
        ))) as s
    );
    if _due <> '{}' then
        update jobq_private.job as j set run_at = least(j.run_at, clock_timestamp())
        where j.job_id = any(_due);
        perform jobq_private.announce_jobs(_due);
    end if;
    return array(
        select l.pending_id
        from unnest(_events) as l
        where l.event in (
            select w.event from unnest(_waits) as w
            where w.job_id not in (select h from unnest(_held) as h)
        )
        or l.pending_id = any(_open) and (l.about = 'event' or exists (
            select from jobq_private.edge as d
            where d.parent = jobq_private.ended_job(l.event)
            and d.after_failure in ('call', 'detach')
            and d.child not in (select h from unnest(_held) as h)
        ))
    );
end
$$;
