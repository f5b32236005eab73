-- Purpose: announce jobs of these queues until the transaction ends, and notify every listening
-- session of each queue for which a worker sleeps, at its commit.
-- Invariant: the producer locks P (shared) before it tests W; an idle worker locks W (shared)
-- before it tests P. So one of them always sees the other, and NOTIFY, whose lock serializes
-- commits, is sent only if a worker sleeps: docs/contributing/design.md has the proof. Queues
-- share 1024 locks. A caller with more than 16 queues takes 16 wider locks instead. Every
-- sleeping worker also holds W 1040. Callers pin the search path.
create or replace function jobq_private.wake(queues text[])
returns void language plpgsql as $$
declare
    _queue text;
    _narrow integer;
    _wide integer;
begin
    foreach _queue in array wake.queues loop
        _narrow := hashtext(_queue) & 1023;
        _wide := 1024 + (_narrow & 15);
        if pg_advisory_xact_lock_shared(
            jobq_private.lock_class('producing'),
            case when cardinality(wake.queues) > 16 then _wide else _narrow end
        ) is not null and jobq_private.is_locked('waiting', 1040) then
            -- Apart, because PostgreSQL prepares the whole of a condition that it comes to.
            if jobq_private.is_locked('waiting', _narrow) or jobq_private.is_locked('waiting', _wide) then
                perform jobq_private.notify('jobq', _queue);
            end if;
        end if;
    end loop;
end
$$;
