-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/wake-ups.md has the
-- proof. A notification queue that is half full is left alone: polling is enough. Queues
-- share 1024 locks, so that no batch takes all of the server's. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := 1785684594;
    _waiting constant integer := 1785684593;
    _queue text;
begin
    foreach _queue in array wake.queues loop
        perform pg_advisory_xact_lock_shared(_producing, hashtext(_queue) & 1023);
        if pg_try_advisory_lock(_waiting, hashtext(_queue) & 1023) then
            perform pg_advisory_unlock(_waiting, hashtext(_queue) & 1023);
        elsif pg_notification_queue_usage() < 0.5 then
            perform pg_notify('jobq', _queue);
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.wake from public;

comment on function jobq_private.wake is
'Notifies sleeping workers of these queues at commit, and nobody when none sleeps.';
