-- Purpose: let a repeatable snapshot that is older than the last change of limits fail
-- with 40001.
-- Invariant: waits for no change that is under way, and delays none.
create or replace function jobq_private.see_limits()
returns void
language plpgsql
as $$
begin
    perform from jobq_private.limit_change as c where c.change_id = 1 for share skip locked;
end
$$;
