-- Purpose: a new job as one of a graph: whether it waits, whether others wait for it, and of which
-- slot of a schedule it is.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.as_node(
    job jobq_private.new_job, waits_in uuid, is_awaited boolean, slot_at timestamptz
)
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
    job.slot_at := as_node.slot_at;
    return job;
end
$$;

revoke all on function jobq_private.as_node from public;

comment on function jobq_private.as_node is
'A new job as one of a graph.';
