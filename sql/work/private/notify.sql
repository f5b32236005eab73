-- Purpose: send a notification at commit, and return whether it is sent.
-- Invariant: not after `set jobq.notify = off`, which a transaction needs that is to be prepared,
-- nor if the notification queue is half full: polling is sufficient. Inlined, so no SET clause.
create or replace function jobq_private.notify(channel text, payload text)
returns boolean language sql as $$
    select pg_catalog.pg_notification_queue_usage() < 0.5
    and pg_catalog.current_setting('jobq.notify', true) is distinct from 'off'
    and pg_catalog.pg_notify(channel, payload) is not null
$$;
