-- Purpose: a new job as one of a graph: whether it waits, and whether others wait for it.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.as_node(job jobq_private.new_job, waits_in uuid, is_awaited boolean)
returns jobq_private.new_job
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    job.callback_of := waits_in;
    job.is_awaited := as_node.is_awaited;
    return job;
end
$$;

revoke all on function jobq_private.as_node from public;

comment on function jobq_private.as_node is
'A new job as one of a graph.';
