-- Purpose: make the jobs that wait for an event due now, and wake their queues.
-- Invariant: rows are locked in the order of their ids. Those that run, retry or have ended
-- are left alone: they look for the event when they come to it. The rows of waiters stay
-- until the jobs have looked. Returns how many jobs became due. Raises: nothing.
create or replace function jobq_private.release_waiters(event text, job_id uuid)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _waiting constant uuid[] := array(
        select w.job_id
        from jobq_private.waiter as w
        where w.event = release_waiters.event
        and release_waiters.job_id in (_all, w.job_id)
        order by w.job_id
    );
    _queues text[];
    _released bigint;
    _has_lanes boolean;
begin
    if _waiting = '{}' then
        return 0;
    end if;
    with held as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued' and j.run_at > clock_timestamp()
        order by j.job_id
        for no key update of j
    ),
    released as (
        update jobq_private.job as j
        set run_at = clock_timestamp()
        from held as h
        where j.job_id = any(_waiting) and j.job_id = h.job_id
        returning j.queue, j.lane_id
    )
    select count(*), array_agg(distinct r.queue), bool_or(r.lane_id is not null)
    into _released, _queues, _has_lanes
    from released as r;
    if _has_lanes then
        perform jobq_private.call_lanes(_waiting);
    end if;
    if _released > 0 then
        perform jobq_private.wake(_queues);
    end if;
    return _released;
end
$$;

revoke all on function jobq_private.release_waiters from public;

comment on function jobq_private.release_waiters is
'Makes the jobs that wait for an event due now.';
