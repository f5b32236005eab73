-- Purpose: wake an idle worker of a queue when the caller's transaction commits, once announce() has
-- said that some worker sleeps; and tell whether one is woken.
-- Invariant: see announce(). Two conditions, since PostgreSQL makes ready the whole of one that it
-- comes to, and the first is enough for workers of few queues. Hot: its callers pin the search path,
-- and assign what it returns, which costs 5,000 instructions less than perform. Raises: nothing.
create or replace function jobq_private.notify_queue(queue text)
returns boolean
language plpgsql
as $$
begin
    if jobq_private.is_held('waiting', hashtext(notify_queue.queue) & 1023) then
        return jobq_private.notify('jobq', notify_queue.queue);
    elsif jobq_private.is_held('waiting', 1024 + (hashtext(notify_queue.queue) & 15)) then
        return jobq_private.notify('jobq', notify_queue.queue);
    end if;
    return false;
end
$$;
