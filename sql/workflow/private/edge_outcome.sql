-- Purpose: what follows for a blocked job when one that it waits for has ended: closes (this
-- one holds it up no more), dooms (it can never run), or null: it waits on.
-- Invariant: ended_as is null while the parent lives, gone when there is no trace of it. No SET
-- clause, so that it is inlined. Raises: nothing.
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
