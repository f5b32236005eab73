-- Purpose: hook: when the next job of these queues is due, for an idle worker; null if none
-- waits. Paused queues have none.
create or replace function jobq_private.on_wait(queues text[], except_kinds text[])
returns timestamptz language plpgsql stable set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return (
        select min(jobq_private.first_due(q.queue, on_wait.except_kinds))
        from unnest(on_wait.queues) as q (queue)
        where not exists (
            select from jobq_private.queue as p
            where p.queue = q.queue and p.paused_at is not null
        )
    );
end
$$;
