-- Purpose: store an event, and release the jobs that wait for it.
-- Invariant: the first one is kept; returns true only for it. Waits for no lock of
-- another transaction except that of the event's own row.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean
language plpgsql
as $$
declare
    _put_off bigint[];
begin
    -- An emit and a wait in two open transactions do not see each other's rows. Each
    -- takes a lock of its own class, shared until its commit, before it tests the other
    -- class. So one of them sees the other, and adds a row for resolve().
    perform pg_advisory_xact_lock_shared(
        jobq_private.lock_class('emitting'), hashtext(store_event.event) & 1023
    );
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    _put_off := jobq_private.release_waiters(
        array[row(
            0, 'event', store_event.job_id, store_event.event, null, false, null, null
        )::jobq_private.pending],
        jobq_private.worked_queues()
    );
    if _put_off <> '{}' or current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.pending (about, id, event)
        values ('event', store_event.job_id, store_event.event);
    end if;
    return true;
end
$$;
