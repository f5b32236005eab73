-- Purpose: For tests: moves waiting jobs into the past, as if this much time had passed.
-- Invariant: changes run_at, expiries and deadlines of waits; not schedules and leases, nor
-- deliveries that wait for a paused endpoint. No role is granted it, so only the owner of
-- the tables can call it. Raises: 22004, 22023.
-- Argument by: the time, 0 to 36500 days.
-- Returns: how many jobs were moved.
-- Example: select jobq_internal.advance_clock('1 hour');
create or replace function jobq_internal.advance_clock(by interval)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _moved uuid[];
begin
    perform jobq_private.check_given('by', num_nulls(advance_clock.by));
    perform jobq_private.check_argument(case
        when advance_clock.by not between '0' and '36500 days' then 'by must be from 0 to 36500 days'
    end);
    update jobq_private.waiter as w set deadline = w.deadline - advance_clock.by;
    with moved as (
        update jobq_private.job as j
        set run_at = j.run_at - advance_clock.by, expires_at = j.expires_at - advance_clock.by
        where j.state in ('queued', 'retrying') and j.run_at <> jobq_private.parked_until()
        returning j.job_id
    )
    select array_agg(m.job_id) into _moved from moved as m;
    perform jobq_private.open_keys(coalesce(_moved, '{}'));
    return coalesce(cardinality(_moved), 0);
end
$$;
