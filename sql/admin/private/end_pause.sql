-- Purpose: end the pause of a kind, or of every job (*), wake the workers, and record it.
-- Invariant: wakes the queues in which jobs wait, and the patterns of workers, such as tenant-*:
-- a worker may wait on the names that its pattern has matched, on the pattern, or on both.
-- Raises: 42501.
create or replace function jobq_private.end_pause(kind text, action text)
returns void language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off
as $$
begin
    delete from jobq_private.paused_kind as p where p.kind = end_pause.kind;
    if not found then
        -- the login sees the pause, but may not end it
        perform jobq_private.check_problem('ALL_QUEUES_NEEDED', (
            select 'kind ' || p.kind from jobq_private.paused_kind as p
            where p.kind = end_pause.kind
        ));
        return;
    end if;
    perform jobq_private.record_audit(end_pause.action, end_pause.kind);
    perform jobq_private.wake(array(
        select w.queue from jobq_private.waiting_queue as w
        union
        select p.queue
        from jobq_private.worker as w
        cross join lateral unnest(w.queues) as p (queue)
        where right(p.queue, 1) = '*'
    ));
end
$$;
