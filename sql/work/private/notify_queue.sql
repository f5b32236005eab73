-- Purpose: wake an idle worker of a queue when the caller's transaction commits, once announce() has
-- said that some worker sleeps.
-- Invariant: see announce(). Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.notify_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _narrow constant integer := hashtext(notify_queue.queue) & 1023;
begin
    if jobq_private.is_held('waiting', _narrow)
        or jobq_private.is_held('waiting', 1024 + (_narrow & 15))
    then
        perform jobq_private.notify('jobq', notify_queue.queue);
    end if;
end
$$;

revoke all on function jobq_private.notify_queue from public;

comment on function jobq_private.notify_queue is
'Notifies sleeping workers of a queue at commit, and nobody when none sleeps.';
