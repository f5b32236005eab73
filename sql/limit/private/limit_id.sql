-- Purpose: the limit of a whole queue, or of a whole kind; that of a lane is its lane_id.
-- Invariant: never a lane's, since neither queues nor keys are empty. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.limit_id(queue text, kind text)
returns uuid
language sql
stable
parallel safe
as $$
    select jobq_private.lane_id(coalesce(queue, ''), coalesce(kind, ''))
$$;
