-- Purpose: make jobs that wait for an event due now, if it was emitted, and wake their
-- queues.
-- Invariant: waits for no lock: returns false if another transaction holds one of the
-- jobs. Skips jobs that run, retry or have ended: they check for the event themselves.
-- The rows of waiters stay until the jobs have checked.
create or replace function jobq_private.release_waiters(event text, job_id uuid)
returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _waiting constant uuid[] := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select w.job_id
            from jobq_private.waiter as w
            where w.event = release_waiters.event
            and release_waiters.job_id in (_all, w.job_id)
        ))
        and j.state = 'queued'
        and j.run_at > clock_timestamp()
        and exists (
            select from jobq_private.event as e
            where e.event = release_waiters.event
            and e.job_id in (release_waiters.job_id, _all)
        )
    );
    _released uuid[];
    _queues constant text[] := jobq_private.worked_queues();
    _denied text[];
begin
    if _queues is not null then  -- a login that works these queues has to do it: see resolve()
        _denied := array(
            select distinct j.queue
            from jobq_private.job as j
            where j.job_id = any(_waiting) and j.queue <> all(_queues)
        );
        perform jobq_private.wake(_denied);
        if _denied <> '{}' then
            return false;
        end if;
    end if;
    if _waiting = '{}' then
        return true;
    end if;
    with held as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued'
        order by j.job_id
        for no key update of j skip locked
    ),
    released as (
        update jobq_private.job as j
        set run_at = least(j.run_at, clock_timestamp())
        from held as h
        where j.job_id = any(_waiting) and j.job_id = h.job_id
        returning j.job_id
    )
    select array_agg(r.job_id) into _released from released as r;
    if _released is not null then
        perform jobq_private.announce_jobs(_released);
    end if;
    return cardinality(_released) is not distinct from cardinality(_waiting);
end
$$;
