-- Purpose: when the next job of these queues becomes runnable: in the past if one is due, null if
-- none waits. Paused jobs do not count. See on_wait().
create or replace function jobq_private.next_due(queues text[], except_kinds text[] default null)
returns timestamptz language plpgsql stable set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    next_due.except_kinds := nullif(next_due.except_kinds || array(
        select p.kind from jobq_private.paused_kind as p
    ), '{}');
    return (
        select case when d.due_at < 'infinity' then greatest(d.due_at, '0001-01-02 UTC') end
        from jobq_private.on_wait(
            jobq_private.match_queues(next_due.queues), next_due.except_kinds
        ) as d (due_at)
        where '*' = any(next_due.except_kinds) is not true
    );
end
$$;
