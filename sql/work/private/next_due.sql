-- Purpose: when the next job of these queues becomes runnable: in the past if one is due, null if
-- none waits. Paused jobs do not count. See on_look().
create or replace function jobq_private.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.paused_kind) then
        next_due.except_kinds := next_due.except_kinds || array(
            select p.kind from jobq_private.paused_kind as p
        );
        if '*' = any(next_due.except_kinds) then
            return null;
        end if;
    end if;
    return (
        select case when d.due_at < 'infinity' then greatest(d.due_at, '0001-01-02 UTC') end
        from (
            select pg_catalog.min(l.due_at)
            from jobq_private.on_look(
                jobq_private.match_queues(next_due.queues), next_due.except_kinds, false
            ) as l
        ) as d (due_at)
    );
end
$$;
