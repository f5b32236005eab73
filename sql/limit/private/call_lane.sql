-- Purpose: after a job has come into a lane: have the lane opened, unless it is open, full (so that
-- the end of a job opens it), or closed until the job is due; open_at says which.
-- Invariant: who closes a lane holds its lock exclusively until the commit, and looks again
-- under it; who adds work or room holds it shared, and then looks whether the lane is closed.
-- So one of the two always sees the other, and neither waits: who cannot have the lock calls
-- in any case. A repeatable snapshot is too old to look with. Raises: nothing.
create or replace function jobq_private.call_lane(
    lane_id uuid, queue text, concurrency_key text, priority integer, run_at timestamptz
)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
begin
    if current_setting('transaction_isolation') = 'read committed'
        and pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.closing_slot(lane_id, concurrency_key)
        )
    then
        perform from jobq_private.lane as l
        where l.lane_id = call_lane.lane_id
        and l.priority = call_lane.priority
        and l.open_at <= call_lane.run_at;
        if found then
            return;
        end if;
        -- Once is enough, however many jobs come while nobody claims: a claim that uses the call
        -- up meanwhile cannot close the lane before the commit.
        perform from jobq_private.lane_call as c
        where c.lane_id = call_lane.lane_id and c.priority = call_lane.priority;
        if found then
            return;
        end if;
    end if;
    insert into jobq_private.lane_call (queue, lane_id, concurrency_key, kind, priority)
    values (
        call_lane.queue, call_lane.lane_id, call_lane.concurrency_key,
        case
            when call_lane.lane_id <> jobq_private.lane_id(
                call_lane.queue, call_lane.concurrency_key
            )
            then (
                select j.kind
                from jobq_private.job as j
                where j.lane_id = call_lane.lane_id and j.state in ('queued', 'retrying')
                limit 1
            )
        end,
        call_lane.priority
    );
end
$$;
