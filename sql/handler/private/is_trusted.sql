-- Purpose: whether a login may run functions of this owner: its own, those of the
-- database's owner, and those of superusers.
-- Invariant: membership in the owning role is not enough, because any other member
-- could have created the function.
create or replace function jobq_private.is_trusted(owner oid, login name)
returns boolean language sql stable parallel safe as $$
    select exists (
        select from pg_catalog.pg_roles as o
        where o.oid = is_trusted.owner and (o.rolsuper or o.rolname = is_trusted.login)
    )
    or is_trusted.owner = (
        select d.datdba
        from pg_catalog.pg_database as d
        where d.datname = current_database()
    )
$$;
