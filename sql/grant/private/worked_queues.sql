-- Purpose: the queues whose jobs whoever has logged in may release; null for all.
-- Invariant: while queue grants are enforced, who holds some queues sees only their jobs, and
-- must not take what it cannot see for gone. Raises: nothing.
create or replace function jobq_private.worked_queues()
returns text[]
language sql
stable
parallel safe
as $$
    select case
        when row_security_active('jobq_private.job') and not coalesce(h.worked && '{*}', false)
        then coalesce(h.worked, '{}')
    end
    from jobq_private.held_queue as h
$$;
