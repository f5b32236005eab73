-- Purpose: the cost of a job that its payload says at a path; null where it says none, or nothing that can be
-- one.
-- Invariant: payload_problem() refuses the latter. Raises: nothing.
create or replace function jobq_private.payload_cost(payload jsonb, path text[])
returns numeric
language sql
immutable
parallel safe
as $$
    select case
        when path is null then null
        when jsonb_typeof(payload #> path) = 'number' then (payload #>> path)::numeric
    end
$$;
