-- Purpose: when the next job of these queues becomes runnable: in the past if one is due, null if
-- none waits. See on_look().
create or replace function jobq_private.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language sql
stable
as $$
    select case when d.due_at < 'infinity' then greatest(d.due_at, '0001-01-02 UTC') end
    from (
        select pg_catalog.min(l.due_at)
        from jobq_private.on_look(next_due.queues, next_due.except_kinds, false) as l
    ) as d (due_at)
$$;
