-- Purpose: whether a job may change from one state to another.
create or replace function jobq_private.is_legal(from_state text, to_state text)
returns boolean language sql stable as $$
    select exists (
        select from jobq_private.transition as t
        where t.from_state = is_legal.from_state and t.to_state = is_legal.to_state
    )
$$;
