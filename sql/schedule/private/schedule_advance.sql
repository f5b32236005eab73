-- Purpose: take the due slots, and move each schedule to its next slot.
-- Invariant: SKIP LOCKED, so no caller waits for another. next_run_at is compared and set in the
-- transaction that stores the jobs, so each slot fires once. One statement locks and the next one
-- reads, so its snapshot includes what others have committed. Earliest first; schedules with
-- missed slots share the rest of max_schedules. Pauses a schedule whose zone no longer exists; a
-- failed one waits for its retry. With only_id, takes no other schedule.
create or replace function jobq_private.schedule_advance(
    max_schedules integer, until timestamptz, only_id uuid default null
)
returns jobq_private.new_job[] language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _due uuid[];
    _jobs jobq_private.new_job[];
begin
    _due := array(
        select s.schedule_id
        from jobq_private.due_schedule as s
        where s.due_at <= schedule_advance.until
        and (schedule_advance.only_id is null or s.schedule_id = schedule_advance.only_id)
        order by s.due_at
        limit schedule_advance.max_schedules
        for no key update skip locked
    );
    if _due = '{}' then
        return null;
    end if;
    with planned as materialized (
        select s.schedule_id, p.*
        from jobq_private.schedule as s
        cross join lateral jobq_private.schedule_slots(
            s.parsed, s.every, case when s.from_completion then 'all' else s.missed end, s.catch_up,
            s.ends_at, s.next_run_at, schedule_advance.until,
            case when s.from_completion then 1
                else schedule_advance.max_schedules / cardinality(_due)
            end
        ) as p
        where s.schedule_id = any (_due)
    ),
    advanced as (
        update jobq_private.schedule as s
        set
            next_run_at = case
                when not s.from_completion or p.slots = '{}' then p.next_run_at
            end,
            last_tick_at = coalesce(p.slots[cardinality(p.slots)], s.last_tick_at),
            status = case when p.problem is null then 'active' else 'paused' end,
            paused_at = case when p.problem is not null then now() end,
            pause_reason = p.problem,
            retry_at = null,
            failure = null
        from planned as p
        where s.schedule_id = p.schedule_id
        returning s as schedule, s.schedule_id, s.jitter, s.dedup, p.slots
    )
    select array_agg(jobq_private.schedule_job(
        f.schedule, f.ordinal, f.slot_at + random() * f.jitter, f.slot_at, f.dedup
    )) into _jobs
    from (
        select a.*, u.slot_at,
            row_number() over (order by u.slot_at, a.schedule_id)::integer as ordinal
        from advanced as a
        cross join lateral unnest(a.slots) as u (slot_at)
    ) as f;
    return _jobs;
end
$$;
