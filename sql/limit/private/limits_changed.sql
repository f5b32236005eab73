-- Purpose: after a change of what a queue, its keys or a kind of its may: have what runs without a place
-- counted, and the lanes that are closed opened.
-- Invariant: waits for no claim, however long its transaction is open, and keeps none off. What such a
-- claim starts by the old limits counts once it commits (uncounted()); a lane that it closes by
-- them is found by find_stranded(). Raises: nothing.
create or replace function jobq_private.limits_changed(queue text)
returns void
language plpgsql
as $$
begin
    perform jobq_private.note_change(hashtext(limits_changed.queue) & 255);
    insert into jobq_private.lane_call (queue, lane_id, concurrency_key)
    select l.queue, l.lane_id, l.concurrency_key
    from jobq_private.lane as l
    where l.queue = limits_changed.queue and l.state <> 'open';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;
