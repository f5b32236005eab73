-- Purpose: for how long a worker of these queues may sleep: until the next job is due.
-- Invariant: a duration by the database's clock, so that no worker's own clock matters;
-- zero or less when there is work now (less by centuries when it is in a lane, which a claim may
-- have passed over), null when none waits. What may be released by a look that has been put off
-- counts as due then, for who sees all queues. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: how long until the next job is due; zero or less when there is work now,
-- null when none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[], except_kinds text[] default null)
returns interval
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _due constant timestamptz := jobq.next_due(due_in.queues, due_in.except_kinds);
    _now constant timestamptz := clock_timestamp();
begin
    return least(
        case when isfinite(_due) then _due - _now when _due < _now then interval '0' end,
        (
            select min(greatest(
                case when isfinite(l.look_at) then l.look_at - _now end,
                least(greatest(_now - l.created_at, interval '10 ms'), interval '1 s')
            ))
            from jobq_private.look as l
            where jobq_private.worked_queues() is null
        )
    );
end
$$;

revoke all on function jobq.due_in from public;
grant execute on function jobq.due_in to jobq_worker, jobq_reader;

comment on function jobq.due_in is
'Returns how long it is until the next job of these queues becomes runnable, or null when none waits.';
