-- Purpose: store an event, and release the jobs that wait for it.
-- Invariant: the first one is kept; returns true only for it. Waits for no lock of
-- another transaction except that of the event's own row.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean language plpgsql as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
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
        -- Those that work the queues of the jobs that it has not released must look.
        perform jobq_private.wake(array(
            select distinct j.queue
            from jobq_private.waiter as w
            join jobq_private.job as j on j.job_id = w.job_id
            where w.event = store_event.event and store_event.job_id in (w.job_id, _all)
        ));
    end if;
    return true;
end
$$;
