-- Purpose: after a change of what a queue, its keys or a kind of its may: give places to what runs
-- without, and open the lanes that are closed.
-- Invariant: the exclusive lock waits for the claims that looked at the old limit, and keeps
-- new ones off until the commit; so none starts unseen, and no lane stays closed. A repeatable
-- snapshot may not see all that those claims have started: has_counted(). Raises: nothing.
create or replace function jobq_private.limits_changed(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _slot constant integer := hashtext(queue) & 255;
begin
    perform pg_advisory_xact_lock(_limits, _slot);
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.slot = _slot;
    if current_setting('transaction_isolation') = 'read committed' then
        perform jobq_private.number_running(queue);
    else
        insert into jobq_private.kind_gate (gate_id) values (null);
    end if;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.queue = limits_changed.queue and l.state <> 'open';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';
