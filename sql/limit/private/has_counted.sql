-- Purpose: whether all that runs in a queue has its place where limits count it: after a change of
-- limits by a repeatable snapshot, which may not have seen all that ran, the next claim gives them.
-- Invariant: only while no other claim of the queue is under way; else false, and nobody waits.
-- Raises: nothing.
create or replace function jobq_private.has_counted(queue text)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
begin
    if not exists (select from jobq_private.kind_gate as k where k.queue = has_counted.queue) then
        return true;
    elsif not pg_try_advisory_xact_lock(_limits, hashtext(queue) & 255) then
        return false;
    end if;
    perform jobq_private.number_running(queue);
    delete from jobq_private.kind_gate as k where k.queue = has_counted.queue;
    return true;
end
$$;

revoke all on function jobq_private.has_counted from public;

comment on function jobq_private.has_counted is
'Says whether all that runs in a queue has its place.';
