-- Purpose: announce that a job is added to a queue, and return whether any worker sleeps.
-- Invariant: the producer locks P (shared) before it tests W; an idle worker locks W (shared)
-- before it tests P. So one of them always sees the other, and NOTIFY, whose lock serializes
-- commits, is sent only if somebody sleeps. docs/protocol.md has the proof. Queues share 1024
-- locks; 16 more stand for all of them. Every sleeping worker also holds W 1040. Inlined, so no
-- SET clause.
create or replace function jobq_private.announce(queue text, is_wide boolean default false)
returns boolean
language sql
as $$
    select pg_catalog.pg_advisory_xact_lock_shared(
        jobq_private.lock_class('producing'), case
            when is_wide then 1024 + (pg_catalog.hashtext(queue) & 15)
            else pg_catalog.hashtext(queue) & 1023
        end
    ) is not null
    and jobq_private.is_held('waiting', 1040)
$$;
