-- Purpose: make jobs due that wait for the events of these rows of pending, and wake their queues.
-- Returns the rows to postpone.
-- Invariant: waits for no lock. Skips jobs that run, retry or have ended: they look for their
-- events themselves. The rows of waiters stay until the jobs have looked. A login with some queues
-- releases only their jobs.
create or replace function jobq_private.release_waiters(
    pending jobq_private.pending[], queues text[]
)
returns bigint[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    -- Transactions that emit or begin to wait do not see each other's rows. Tests this before it
    -- reads the waiters, so that these include the rows of those that ended.
    _open constant bigint[] := array(
        select l.pending_id
        from unnest(pending) as l
        where jobq_private.is_locked('expecting', hashtext(l.event) & 1023)
        or jobq_private.is_locked('emitting', hashtext(l.event) & 1023)
    );
    _waits jobq_private.waiter[];
    _held uuid[];
begin
    _waits := array(
        select w
        from unnest(pending) as l
        join jobq_private.waiter as w on w.event = l.event and l.id in (_all, w.job_id)
        -- by the index, whatever the statistics say of tables that have just been empty
        where w.event = any(array(select o.event from unnest(pending) as o))
        and (select j.state = 'queued' and j.run_at > clock_timestamp()
            from jobq_private.job as j where j.job_id = w.job_id)
        and exists (
            select from jobq_private.event as e
            where e.event = l.event and e.job_id in (l.id, _all)
        )
    );
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(select w.job_id from unnest(_waits) as w))
        and j.state = 'queued' and (queues is null or j.queue = any(queues))
        for no key update skip locked
    );
    if _held <> '{}' then
        update jobq_private.job as j set run_at = least(j.run_at, clock_timestamp())
        where j.job_id = any(_held);
        perform jobq_private.announce_jobs(_held);
    end if;
    return array(
        select o from unnest(_open) as o
        union
        select l.pending_id
        from unnest(pending) as l
        join unnest(_waits) as w on w.event = l.event
        where w.job_id not in (select h from unnest(_held) as h)
    );
end
$$;
