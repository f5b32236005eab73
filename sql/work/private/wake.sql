-- Purpose: wake an idle worker of each of these queues when the caller's transaction commits.
-- Invariant: see announce(). A caller with more than 16 queues takes the 16 locks that stand for all
-- queues instead of one each. Callers pin the search path. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
as $$
declare
    _queue text;
begin
    foreach _queue in array wake.queues loop
        if jobq_private.announce(_queue, cardinality(wake.queues) > 16) then
            -- Apart, because PostgreSQL prepares the whole of a condition that it comes to.
            if jobq_private.is_held('waiting', hashtext(_queue) & 1023)
                or jobq_private.is_held('waiting', 1024 + (hashtext(_queue) & 15))
            then
                perform jobq_private.notify('jobq', _queue);
            end if;
        end if;
    end loop;
end
$$;
