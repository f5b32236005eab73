-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. Queues share 1024 locks; who has more than 16 queues takes 16 that stand for all of
-- them, so that nobody takes all of the server's. Hot: its callers pin the search path, and an
-- expression, whose parts come in order, costs a third of a PERFORM. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _queue text;
    _narrow integer;
begin
    foreach _queue in array wake.queues loop
        _narrow := hashtext(_queue) & 1023;
        if pg_advisory_xact_lock_shared(
            jobq_private.lock_class('producing'),
            case
                when cardinality(wake.queues) > 16 then 1024 + (_narrow & 15) else _narrow
            end
        ) is not null
        and (
            jobq_private.is_held('waiting', _narrow)
            or jobq_private.is_held('waiting', 1024 + (_narrow & 15))
        )
        then
            perform jobq_private.notify('jobq', _queue);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.wake from public;

comment on function jobq_private.wake is
'Notifies sleeping workers of these queues at commit, and nobody when none sleeps.';
