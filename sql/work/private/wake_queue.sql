-- Purpose: wake an idle worker of a queue when the caller's transaction commits.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. Queues share 1024 locks, of which 16 more stand for all. Hot: its callers pin the search
-- path, and an expression, whose parts come in order, costs a third of a PERFORM. Raises: nothing.
create or replace function jobq_private.wake_queue(queue text, is_wide boolean default false)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _narrow constant integer := hashtext(wake_queue.queue) & 1023;
    _wide constant integer := 1024 + (_narrow & 15);
begin
    if pg_advisory_xact_lock_shared(
        jobq_private.lock_class('producing'),
        case when wake_queue.is_wide then _wide else _narrow end
    ) is not null
    and (
        jobq_private.is_held('waiting', _narrow) or jobq_private.is_held('waiting', _wide)
    )
    then
        perform jobq_private.notify('jobq', wake_queue.queue);
    end if;
end
$$;

revoke all on function jobq_private.wake_queue from public;

comment on function jobq_private.wake_queue is
'Notifies sleeping workers of a queue at commit, and nobody when none sleeps.';
