-- Purpose: the listening session of an idle worker says that it is about to sleep.
-- Invariant: W (shared, session) is taken before P is tried. True means that every
-- producer that missed W has committed: claim once more, then sleep until notified.
-- False: a producer is in flight; claim, and call again shortly. Raises: 22004, 22023.
create or replace function jobq.begin_wait(queues text[])
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _producing constant integer := 1785684594;
    _waiting constant integer := 1785684593;
    _queue text;
    _is_quiet boolean := true;
begin
    perform jobq_private.check_claim(begin_wait.queues, 'listener', 0);
    perform pg_advisory_unlock_all();
    foreach _queue in array begin_wait.queues loop
        perform pg_advisory_lock_shared(_waiting, hashtext(_queue) & 1023);
    end loop;
    foreach _queue in array begin_wait.queues loop
        if pg_try_advisory_lock(_producing, hashtext(_queue) & 1023) then
            perform pg_advisory_unlock(_producing, hashtext(_queue) & 1023);
        else
            _is_quiet := false;
        end if;
    end loop;
    return _is_quiet;
end
$$;

revoke all on function jobq.begin_wait from public;
grant execute on function jobq.begin_wait to jobq_worker;

comment on function jobq.begin_wait is
'Marks the listening session as asleep on these queues; true when no enqueue is in flight that could have missed it.';
