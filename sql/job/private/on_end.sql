-- Purpose: hook, called when attempts and jobs end, or jobs are deleted.
-- Invariant: the caller has ended them in its transaction. Empty in the core;
-- sql/wiring/on_end.sql replaces it in a full installation. Jobs that do not need it, as nearly
-- all, are not passed. Raises: nothing.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void
language plpgsql
as $$
begin
end
$$;
