-- Purpose: the front of a queue as share_front() has left it, for a session whose looks at the
-- head are slow; null when the look is due.
-- Invariant: the job there must stand in this queue, and have been touched by a transaction
-- that may be open still: so a number that is old, or that of another queue, is none. The last
-- tenth of a second draws by lot which claim looks, the more likely the later, so that not all do
-- so at once. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.shared_front(
    queue text, now timestamptz
)
returns jobq_private.claim_mark
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _packed constant bigint := pg_sequence_last_value(
        format('jobq_private.claim_front_%s', hashtext(queue) & 7)::regclass
    );
    _left constant integer := (
        (_packed >> 48) - (extract(epoch from now) * 1000)::bigint
    ) & 32767;
    _mark jobq_private.claim_mark;
begin
    if _left <= 100 and _left > random() * 100 then
        select
            j.queue, j.priority, j.run_at, j.job_id, null::interval, null::integer,
            shared_front.now + _left * interval '1 ms', false, true, true
        into _mark
        from jobq_private.job as j
        where j.ctid = format('(%s,%s)', _packed >> 16 & 4294967295, _packed & 65535)::tid
        and j.queue = shared_front.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and age(j.xmax) <= age(pg_snapshot_xmin(pg_current_snapshot())::xid);
    end if;
    return _mark;
end
$$;

revoke all on function jobq_private.shared_front from public;

comment on function jobq_private.shared_front is
'The front of a queue that the claims of other sessions have left.';
