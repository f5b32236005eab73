-- Purpose: keep an event, and release those that wait for it.
-- Invariant: the first one stays; true for that one alone. The emitter holds E (shared)
-- until it commits, before it looks for waiters; a waiter stands in the table before it
-- tries E (exclusively, wait_for()). So one of the two always sees the other. A transaction
-- with one snapshot cannot see who began to wait since: it leaves a row for maintain().
-- Raises: nothing.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
begin
    perform pg_advisory_xact_lock_shared(_emitting, hashtext(store_event.event) & 1023);
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.late_event (event, job_id)
        values (store_event.event, store_event.job_id);
    end if;
    perform jobq_private.release_waiters(store_event.event, store_event.job_id);
    return true;
end
$$;

revoke all on function jobq_private.store_event from public;

comment on function jobq_private.store_event is
'Keeps an event unless it is known already, and releases those that wait for it.';
