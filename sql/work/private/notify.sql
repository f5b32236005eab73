-- Purpose: send a notification at commit, unless the session has said: set jobq.notify = off.
-- Invariant: a transaction that has notified cannot be prepared (PREPARE TRANSACTION), so
-- one that will be says so; polling alone is enough. A notification queue that is half full
-- is left alone too. Raises: nothing.
create or replace function jobq_private.notify(channel text, payload text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if pg_notification_queue_usage() < 0.5
        and coalesce(current_setting('jobq.notify', true), '') <> 'off'
    then
        perform pg_notify(notify.channel, notify.payload);
    end if;
end
$$;

revoke all on function jobq_private.notify from public;

comment on function jobq_private.notify is
'Sends a notification at commit, where the session allows it and there is room.';
