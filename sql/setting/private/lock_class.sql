-- Purpose: the class of each sort of advisory lock, the first key of pg_advisory_lock().
-- Invariant: all that jobq takes are here, so that no two mean the same. waiting, producing
-- and awaiting are W, P and E of docs/protocol.md, awaiting_events that for all jobs, ending
-- that of one job; emitting and expecting are those of events (store_event()); closing that of
-- lanes (call_lane()), gating that of limits that are made, laning that of lanes that are made,
-- joining that of graphs (add_graph());
-- maintaining is held by who calls maintain(). No SET clause, so that it is inlined and
-- costs nothing.
-- Raises: nothing.
create or replace function jobq_private.lock_class(name text)
returns integer
language sql
immutable
parallel safe
as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'gating' then 1785684600
        when 'laning' then 1785684601
        when 'expecting' then 1785684610
        when 'joining' then 1785684611
        when 'awaiting' then 1785684612
        when 'awaiting_events' then 1785684613
    end
$$;
