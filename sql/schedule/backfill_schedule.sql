-- Purpose: Creates the jobs of past slots of a schedule that did not fire, each once.
-- Invariant: each slot once, even beside tick() and other calls, because the schedule's row is
-- locked. A slot is known only by its job, so a slot older than the retention counts as not
-- fired. The overlap rule does not apply: each slot has its job, due at once, in the order of the
-- slots. All or none; refused if the span has too many slots. Works for paused schedules, and for
-- spans before the start. Raises: 22004, 22023, 42501, JQ002, JQ004, JQ007.
-- Argument since: slots at or after this instant.
-- Argument until: slots before this instant, which is not later than now.
-- Argument max_slots: maximum number of slots, 1 to 10000; a span with more is refused.
-- Column job_id: the created job; null in a dry run.
-- Example: select * from jobq.backfill_schedule('weekly summary', now() - interval '30 days', now(), dry_run => true);
create or replace function jobq.backfill_schedule(
    schedule text, since timestamptz, until timestamptz, max_slots integer default 1000,
    dry_run boolean default false, reason text default null
)
returns table (slot_at timestamptz, job_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _found constant jobq_private.schedule := jobq_private.schedule_hold(schedule);
    _slots timestamptz[];
begin
    perform jobq_private.check_given(
        'since, until, max_slots and dry_run', num_nulls(since, until, max_slots, dry_run)
    );
    perform jobq_private.check_argument(case
        when not since < until then 'since must be before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'the span must be between 1900 and now'
        when max_slots not between 1 and 10000 then 'max_slots must be from 1 to 10000'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when _found.from_completion then 'a schedule with from_completion has no past slots'
    end);
    _slots := jobq_private.backfill_slots(
        _found, backfill_schedule.since, backfill_schedule.until, backfill_schedule.max_slots
    );
    if backfill_schedule.dry_run then
        return query select u, null::uuid from unnest(_slots) as u;
        return;
    end if;
    return query select f.slot_at, f.job_id
    from jobq_private.schedule_store(array(
        select jobq_private.schedule_job(_found, u.n::integer, now(), u.at, 'enqueue')
        from unnest(_slots) with ordinality as u (at, n)
    )) as f;
    perform jobq_private.record_audit(
        'backfill_schedule', _found.name,
        concat_ws(': ', cardinality(_slots) || ' slots', backfill_schedule.reason)
    );
end
$$;
grant execute on function jobq.backfill_schedule to jobq_operator;
