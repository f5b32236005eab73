-- Purpose: Returns the time until the next job of these queues is runnable, or null if none
-- waits.
-- Invariant: by the database's clock; limits may hold back a job that is due. Raises: 22004.
-- Returns: the time until the next job is due; zero if one is due, null if none waits.
-- Example: select jobq.due_in('{default}');
create or replace function jobq.due_in(queues text[], except_kinds text[] default null)
returns interval language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _wait interval;
begin
    perform jobq_private.check_given('queues', num_nulls(due_in.queues));
    _wait := jobq_private.next_due(due_in.queues, due_in.except_kinds) - clock_timestamp();
    return case when _wait < '0' then '0' else _wait end;
end
$$;
grant execute on function jobq.due_in to jobq_worker, jobq_reader;
