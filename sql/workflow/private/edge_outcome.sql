-- Purpose: what the end of a parent means for a blocked job: closes (it no longer waits
-- for this parent), dooms (it can never run), or null: it continues to wait.
-- Invariant: ended_as is null for a live parent, gone for one without any record. No
-- SET clause, so that it is inlined.
create or replace function jobq_private.edge_outcome(ended_as text, after_failure text)
returns text
language sql
immutable
parallel safe
as $$
    select case
        when $1 is null then null
        when $1 = 'succeeded' or $2 = 'run' then 'closes'
        when $2 = 'cancel' or $1 = 'gone' then 'dooms'
    end
$$;
