-- Purpose: say until the transaction ends that a job is added to a queue, and tell whether any
-- worker sleeps, of whatever queue.
-- Invariant: the producer holds P (shared) before it tests W; an idle worker holds W
-- (shared) before it tests P. So one of the two always sees the other, and NOTIFY, whose
-- lock serialises commits, is sent only when somebody sleeps. docs/protocol.md has the
-- proof. Queues share 1024 locks, of which 16 more stand for all; W has one more, which every sleeping
-- worker holds: nearly always the only one that is looked at. No SET clause, so that it is
-- inlined. Raises: nothing.
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
