-- Purpose: send a notification at commit, unless the session has said: set jobq.notify = off; and
-- tell whether it is sent.
-- Invariant: a transaction that has notified cannot be prepared (PREPARE TRANSACTION), so
-- one that will be says so; polling alone is enough. A notification queue that is half full
-- is left alone too. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.notify(channel text, payload text)
returns boolean
language sql
as $$
    select pg_catalog.pg_notification_queue_usage() < 0.5
    and pg_catalog.current_setting('jobq.notify', true) is distinct from 'off'
    and pg_catalog.pg_notify(channel, payload) is not null
$$;
