-- Purpose: the class of each sort of advisory lock, the first key of pg_advisory_lock().
-- Invariant: all that jobq takes are here, so that no two mean the same. waiting, producing
-- and awaiting are W, P and E of docs/wake-ups.md, awaiting_events that for all jobs, ending
-- that of one job; emitting is that of events; closing that of lanes (call_lane()), limiting
-- that of a queue's limits, gating that of gates that are made, laning that of lanes that are
-- made, batching that of a batch (enter_batches()), joining that of graphs (join_alone());
-- maintaining is held by who calls maintain(). No SET clause, so that it is inlined and
-- costs nothing.
-- Raises: nothing.
create or replace function jobq_private.lock_class(name text)
returns integer
language sql
immutable
parallel safe
security invoker
as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'limiting' then 1785684599
        when 'gating' then 1785684600
        when 'laning' then 1785684601
        when 'batching' then 1785684610
        when 'joining' then 1785684611
        when 'awaiting' then 1785684612
        when 'awaiting_events' then 1785684613
    end
$$;

revoke all on function jobq_private.lock_class from public;

comment on function jobq_private.lock_class is
'The first key of each sort of advisory lock.';
