-- Purpose: make jobs due that wait for the first of several ended jobs that they have called, or
-- for all of these, whose ends it then records as steps. Returns the rows of pending to postpone.
-- Invariant: waits for no lock. Skips jobs that run, retry or have ended: they look for the ends
-- themselves. Looks for live children after it has locked their caller, so of two that end
-- together the later transaction finds both.
create or replace function jobq_private.release_callers(
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
    _ended constant jobq_private.pending[] := array(
        select l from unnest(pending) as l where l.about = 'call'
    );
    _open bigint[];
    _waiting uuid[];
    _held uuid[];
    _due uuid[];
begin
    if _ended = '{}' then
        return '{}'::bigint[];
    elsif queues is not null then  -- callers may be in any queue
        return array(select l.pending_id from unnest(_ended) as l);
    end if;
    -- A caller may be about to wait in a transaction that does not see the end: see
    -- wait_events(). Tests this before it reads the waiters.
    _open := array(
        select l.pending_id
        from unnest(_ended) as l
        where l.created_at >= now()
        or jobq_private.is_locked('expecting', hashtext('job_ended:' || l.id) & 1023)
    );
    _waiting := array(
        select distinct j.job_id
        from unnest(_ended) as l
        join jobq_private.waiter as w on w.event = 'job_ended:' || l.id
        join jobq_private.job as j on j.job_id = w.job_id
        where j.state = 'queued' and j.run_at > clock_timestamp()
    );
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued'
        order by j.job_id
        for no key update skip locked
    );
    _due := array(
        select w.job_id
        from unnest(_ended) as l
        join jobq_private.waiter as w on w.event = 'job_ended:' || l.id and not w.needs_all
        where w.job_id in (select h from unnest(_held) as h)
        union
        -- From the last one: children mostly end in order, so a live one is found soon.
        select h.job_id
        from unnest(_held) as h (job_id)
        where (
            select true
            from jobq_private.waiter as w
            where w.job_id = h.job_id and w.needs_all and (
                select true
                from jobq_private.job as c
                where c.job_id = jobq_private.ended_job(w.event)
            )
            order by w.event desc
            limit 1
        ) is null
    );
    if _due <> '{}' then
        with recorded as (
            insert into jobq_private.step (job_id, name, value, attempt)
            select
                j.job_id, 'event:' || w.event,
                jsonb_build_object('outcome', 'arrived', 'payload', e.payload), j.attempt
            from jobq_private.job as j
            join jobq_private.waiter as w on w.job_id = j.job_id and w.needs_all
            cross join lateral (
                select jobq_private.ended_job(w.event) offset 0
            ) as c (child_id)
            cross join lateral jobq_private.child_end(j.job_id, c.child_id) as e
            where j.job_id = any(_due)
            on conflict on constraint step_pkey do nothing
        ),
        settled as (
            delete from jobq_private.waiter as w where w.job_id = any(_due) and w.needs_all
        )
        update jobq_private.job as j
        set run_at = least(j.run_at, clock_timestamp())
        where j.job_id = any(_due);
        perform jobq_private.announce_jobs(_due);
    end if;
    return array(
        select l.pending_id
        from unnest(_ended) as l
        where exists (
            select from jobq_private.waiter as w
            where w.event = 'job_ended:' || l.id
            and w.job_id in (select u from unnest(_waiting) as u)
            and w.job_id not in (select h from unnest(_held) as h)
        )
        or l.pending_id = any(_open) and exists (
            select from jobq_private.edge as d
            where d.parent = l.id
            and d.after_failure in ('call', 'detach')
            and d.child not in (select h from unnest(_held) as h)
        )
    );
end
$$;
