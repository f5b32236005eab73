-- Purpose: the queues whose jobs the login may release; null for all.
-- Invariant: while queue grants are enforced, a login with some queues sees only their
-- jobs, and must not treat invisible jobs as deleted.
create or replace function jobq_private.worked_queues()
returns text[] language sql stable parallel safe as $$
    select case
        when row_security_active('jobq_private.job') and not coalesce(h.worked && '{*}', false)
        then coalesce(h.worked, '{}')
    end
    from jobq_private.held_queue as h
$$;
