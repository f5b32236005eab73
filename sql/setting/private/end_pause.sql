-- Purpose: end the pause of a kind, or of every job (*), wake the workers, and record it.
create or replace function jobq_private.end_pause(kind text, action text)
returns void
language plpgsql
as $$
begin
    delete from jobq_private.paused_kind as p where p.kind = end_pause.kind;
    if not found then
        return;
    end if;
    perform jobq_private.record_audit(end_pause.action, end_pause.kind);
    perform jobq_private.wake(array(
        select distinct q
        from jobq_private.worker as w
        cross join lateral unnest(w.queues) as q
    ));
end
$$;
