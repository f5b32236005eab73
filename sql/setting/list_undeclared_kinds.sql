-- Purpose: Lists which of these kinds are not declared, or only by an older version of the
-- program.
-- Raises: nothing.
-- Argument version: version of the program, as for put_kind(); null means only undeclared kinds.
-- Returns: the kinds, by name.
-- Example: select * from jobq_internal.list_undeclared_kinds('{send_email,resize}', 12);
create or replace function jobq_internal.list_undeclared_kinds(
    kinds text[], version bigint default null
)
returns table (kind text) language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
    select u.kind
    from unnest(list_undeclared_kinds.kinds) as u (kind)
    where not exists (
        select from jobq_private.kind as k
        where k.kind = u.kind
        and (list_undeclared_kinds.version is null or k.version >= list_undeclared_kinds.version)
    )
    order by u.kind
$$;
grant execute on function jobq_internal.list_undeclared_kinds
to jobq_producer, jobq_worker, jobq_operator;
