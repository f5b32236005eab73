-- Purpose: the cost that a payload has at a path; null if there is no valid one, as in a payload
-- that was stored before its kind declared the path. Inlined, so no SET clause.
create or replace function jobq_private.payload_cost(payload jsonb, path text[])
returns numeric language sql immutable parallel safe as $$
    select case
        when jsonb_typeof(payload #> path) <> 'number' then null
        when (payload #>> path)::numeric between 0 and 1000000000000
        then (payload #>> path)::numeric
    end
$$;
