-- Purpose: have a repeatable snapshot that is older than the last change of a queue's or a kind's
-- limits fail with 40001: it would start jobs unseen.
-- Invariant: the caller holds the lock of the queue's limits, so that nobody waits. Raises:
-- nothing.
create or replace function jobq_private.see_limits(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.limit_change as c
    where c.slot in (hashtext(see_limits.queue) & 255, 256)
    for share;
end
$$;

revoke all on function jobq_private.see_limits from public;

comment on function jobq_private.see_limits is
'Has a snapshot that is older than the last change of limits fail.';
