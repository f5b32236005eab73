-- Purpose: the function of a kind: its owner, and whether the login and its current
-- role may execute it; no row if there is none.
-- Invariant: looked up in the catalog by schema and name, independent of the search path. It
-- takes one jsonb and returns jsonb, or takes and returns jsonb[]; the latter is preferred.
create or replace function jobq_private.sql_function(run text)
returns table (function oid, owner oid, may_execute boolean, is_batch boolean) language sql stable
parallel safe as $$
    select
        p.oid,
        p.proowner,
        (
            select bool_and(
                has_function_privilege(u.name, p.oid, 'execute')
                and has_schema_privilege(u.name, n.oid, 'usage')
            )
            from (
                values (session_user), (nullif(current_setting('role'), 'none')::name)
            ) as u (name)
            where u.name is not null
        ),
        p.prorettype = 'jsonb[]'::regtype
    from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = (parse_ident(sql_function.run))[1]
    and p.proname = (parse_ident(sql_function.run))[2]
    and (p.proargtypes, p.prorettype) in (
        ('3802'::oidvector, 'jsonb'::regtype), ('3807'::oidvector, 'jsonb[]'::regtype)
    )
    and p.prokind = 'f'
    and p.provariadic = 0
    and not p.proretset
    order by p.prorettype desc
    limit 1
$$;
