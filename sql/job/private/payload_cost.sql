-- Purpose: the cost that a payload has at a path; null if there is no number. Inlined, so no SET clause.
create or replace function jobq_private.payload_cost(payload jsonb, path text[])
returns numeric
language sql
immutable
parallel safe
as $$
    select case
        when jsonb_typeof(payload #> path) = 'number' then (payload #>> path)::numeric
    end
$$;
