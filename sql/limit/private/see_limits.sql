-- Purpose: have a repeatable snapshot that is older than the last change of a queue's or a kind's
-- limits fail with 40001: it would start jobs unseen.
-- Invariant: waits for no change that is under way, and holds none up (note_change()). Raises:
-- nothing.
create or replace function jobq_private.see_limits(queue text)
returns void
language plpgsql
as $$
begin
    perform from jobq_private.limit_change as c
    where c.slot in (hashtext(see_limits.queue) & 255, 256)
    for share skip locked;
end
$$;
