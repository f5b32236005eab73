-- Purpose: Marks the listening session as waiting on these queues; returns true if no enqueue in
-- progress could be missed.
-- Invariant: true means that every producer that did not see this session wait has committed;
-- false, that one of them may still be open. So a worker that follows the answer misses no
-- enqueue.
-- Inside: W (shared, session) is taken before P is tried; jobq_private.wake() says which locks
-- stand for a queue. Raises: 22004, 22023.
-- Argument queues: the queues from which the worker claims. Name those that a pattern such as
-- tenant-* has matched: no producer wakes a worker for the pattern itself.
-- Returns: true: claim once more, and if that returns nothing, sleep until notified; false:
-- claim, and call again after some milliseconds.
-- Example: select jobq.begin_wait('{default}');
create or replace function jobq.begin_wait(queues text[])
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _producing constant integer := jobq_private.lock_class('producing');
    _waiting constant integer := jobq_private.lock_class('waiting');
    _is_wide constant boolean := cardinality(begin_wait.queues) > 16;
    _queue text;
    _narrow integer;
    _wide integer;
    _is_quiet boolean := true;
begin
    perform jobq_private.check_claim(begin_wait.queues);
    perform pg_advisory_unlock_all();
    perform pg_advisory_lock_shared(_waiting, 1040);
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        perform pg_advisory_lock_shared(
            _waiting, case when _is_wide then 1024 + (_narrow & 15) else _narrow end
        );
    end loop;
    foreach _queue in array begin_wait.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        _is_quiet := _is_quiet
            and pg_try_advisory_lock(_producing, _narrow)
            and pg_advisory_unlock(_producing, _narrow)
            and pg_try_advisory_lock(_producing, _wide)
            and pg_advisory_unlock(_producing, _wide);
    end loop;
    return _is_quiet;
end
$$;
grant execute on function jobq.begin_wait to jobq_worker;
