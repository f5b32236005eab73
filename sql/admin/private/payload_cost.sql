-- Purpose: the cost that a payload has at the path of its kind; null if there is none.
create or replace function jobq_private.payload_cost(kind text, payload jsonb)
returns numeric
language sql
stable
as $$
    select case
        when jsonb_typeof(payload #> k.cost) = 'number' then (payload #>> k.cost)::numeric
    end
    from jobq_private.kind as k
    where k.kind = payload_cost.kind
$$;
