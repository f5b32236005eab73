-- Purpose: pause a kind, or every job (*), and record it. A repeated call changes the reason if
-- it gives one, not the time of the pause.
create or replace function jobq_private.store_pause(kind text, action text, reason text)
returns void language sql as $$
    insert into jobq_private.paused_kind as p (kind, pause_reason)
    values (store_pause.kind, store_pause.reason)
    on conflict on constraint paused_kind_pkey do update
    set pause_reason = coalesce(excluded.pause_reason, p.pause_reason);
    select jobq_private.record_audit(store_pause.action, store_pause.kind, store_pause.reason)
$$;
