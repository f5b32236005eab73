-- Purpose: the reason why no worker's login can run an existing function; null if one can.
-- Invariant: reads only. Superusers count only if no other login is a worker's;
-- otherwise they would hide that no worker may execute it.
create or replace function jobq_private.sql_function_bar(run text)
returns text language sql stable parallel safe as $$
    with login as (
        select r.rolname, r.rolsuper, bool_and(r.rolsuper) over () as is_alike
        from pg_catalog.pg_roles as r
        where r.rolcanlogin
        and pg_has_role(r.rolname, 'jobq_worker', 'usage')
    )
    select format(
        'a worker whose login may call %s and trusts its owner %s', sql_function_bar.run,
        pg_get_userbyid(f.owner)
    )
    from jobq_private.sql_function(sql_function_bar.run) as f
    where not exists (
        select from login as l
        where l.rolsuper = l.is_alike
        and jobq_private.is_trusted(f.owner, l.rolname)
        and has_function_privilege(l.rolname, f.function, 'execute')
        and has_schema_privilege(
            l.rolname, (parse_ident(sql_function_bar.run))[1], 'usage'
        )
    )
$$;
