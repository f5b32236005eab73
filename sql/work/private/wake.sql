-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. W is tried and let go in one expression, between whose parts no cancel comes.
-- Queues share 1024 locks; who has more than 16 queues takes 16 that stand for all of
-- them, so that nobody takes all of the server's. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := jobq_private.lock_class('producing');
    _waiting constant integer := jobq_private.lock_class('waiting');
    _is_wide constant boolean := cardinality(wake.queues) > 16;
    _queue text;
    _narrow integer;
    _wide integer;
begin
    foreach _queue in array wake.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        perform pg_advisory_xact_lock_shared(
            _producing, case when _is_wide then _wide else _narrow end
        );
        if not (
            pg_try_advisory_lock(_waiting, _narrow)
            and pg_advisory_unlock(_waiting, _narrow)
            and pg_try_advisory_lock(_waiting, _wide)
            and pg_advisory_unlock(_waiting, _wide)
        ) then
            perform jobq_private.notify('jobq', _queue);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.wake from public;

comment on function jobq_private.wake is
'Notifies sleeping workers of these queues at commit, and nobody when none sleeps.';
