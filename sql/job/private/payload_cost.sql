-- Purpose: the cost in a payload at a path; null if there is none, or if it is not a number.
create or replace function jobq_private.payload_cost(payload jsonb, path text[])
returns numeric
language sql
immutable
as $$
    select case
        when path is null then null
        when jsonb_typeof(payload #> path) = 'number' then (payload #>> path)::numeric
    end
$$;
