-- Purpose: wake an idle worker of these queues when the caller's transaction commits.
-- Invariant: who has more than 16 queues takes 16 locks that stand for all of them, so that nobody
-- takes all of the server's. Hot: its callers pin the search path. Raises: nothing.
create or replace function jobq_private.wake(queues text[])
returns void
language plpgsql
as $$
declare
    _queue text;
    _is_told boolean;
begin
    foreach _queue in array wake.queues loop
        if jobq_private.announce(_queue, cardinality(wake.queues) > 16) then
            _is_told := jobq_private.notify_queue(_queue);
        end if;
    end loop;
end
$$;
