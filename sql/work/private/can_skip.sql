-- Purpose: whether an index scan can skip from one value of a column to the next, as PostgreSQL
-- does from 18 on: so a bound on a later column keeps it from what lies between.
-- Invariant: inlined, so no SET clause. Raises: nothing.
create or replace function jobq_private.can_skip()
returns boolean
language sql
stable
parallel safe
security invoker
as $$
    select pg_catalog.current_setting('server_version_num')::integer >= 180000
$$;

revoke all on function jobq_private.can_skip from public;

comment on function jobq_private.can_skip is
'Says whether an index scan can skip from one value of a column to the next.';
