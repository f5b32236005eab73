-- Purpose: return when the next job of these queues becomes runnable.
-- Invariant: see on_look(). Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: the time; in the past if a job is due, null if none waits.
-- Example: select jobq_internal.next_due('{default}');
create or replace function jobq_internal.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    end if;
    return (
        select case when d.due_at < 'infinity' then greatest(d.due_at, '0001-01-02 UTC') end
        from (
            select min(l.due_at)
            from jobq_private.on_look(next_due.queues, next_due.except_kinds, false) as l
        ) as d (due_at)
    );
end
$$;

grant execute on function jobq_internal.next_due to jobq_worker, jobq_reader;

comment on function jobq_internal.next_due is
'Returns when the next job of these queues is runnable, or null if none waits.';
