-- Purpose: for schema_objects(): owners other than jobq_owner, policies, privileges of
-- jobq's roles and of PUBLIC, and comments.
-- Invariant: reads only; partitions appear only with their owners.
create or replace function jobq_private.schema_access(prefix text)
returns table (rank integer, made oid, object text, definition text) language sql stable
set search_path = pg_catalog, pg_temp as $$
    with space as (
        select n.* from pg_namespace as n
        where n.nspname ~ format('^%s(_http|_internal|_private)?$', prefix)
    ),
    thing (catalog, oid, kind, name, owner, acl) as (
        select 'pg_namespace'::regclass, s.oid, 'schema', quote_ident(s.nspname), s.nspowner,
            coalesce(s.nspacl, acldefault('n', s.nspowner))
        from space as s
        union all
        select 'pg_proc', p.oid, 'routine', p.oid::regprocedure::text, p.proowner,
            coalesce(p.proacl, acldefault('f', p.proowner))
        from pg_proc as p
        join space as s on s.oid = p.pronamespace
        union all
        select null, t.oid, 'type', t.oid::regtype::text, t.typowner, null
        from pg_type as t
        join space as s on s.oid = t.typnamespace
        where t.typtype in ('d', 'e')
        union all
        select case when not c.relispartition then 'pg_class'::regclass end, c.oid,
            case c.relkind when 'S' then 'sequence' when 'c' then 'type' when 'v' then 'view' else 'table' end,
            c.oid::regclass::text, c.relowner, case when not c.relispartition then c.relacl end
        from pg_class as c
        join space as s on s.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'S', 'c')
    )
    select 2, t.oid, format('owner of %s %s', t.kind, t.name), t.owner::regrole::text
    from thing as t
    where t.owner <> (select g.oid from pg_roles as g where g.rolname = 'jobq_owner')
    and not exists (
        -- A column's sequence has the owner of its table.
        select from pg_depend as d
        where t.kind = 'sequence' and d.classid = 'pg_class'::regclass and d.objid = t.oid
        and d.deptype in ('a', 'i') and d.refobjsubid > 0
    )
    union all
    select 7, p.oid, format('policy %I on %s', p.polname, t.name), concat_ws(
        ' ', format('create policy %I on %s', p.polname, t.name),
        case when not p.polpermissive then 'as restrictive' end,
        'for ' || case p.polcmd
            when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all'
        end,
        'using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
        'with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'
    )
    from thing as t
    join pg_policy as p on p.polrelid = t.oid and t.catalog = 'pg_class'::regclass
    union all
    select 8, t.oid, g.statement, g.statement
    from thing as t
    cross join lateral aclexplode(t.acl) as a
    left join pg_roles as r on r.oid = a.grantee
    cross join lateral format('grant %s on %s %s to %s', lower(a.privilege_type),
        replace(t.kind, 'view', 'table'), t.name, coalesce(r.rolname, 'public')) as g (statement)
    where a.grantee <> t.owner and coalesce(r.rolname, 'public') in (
        'public', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
    )
    union all
    select 9, c.objoid, format('comment on %s %s', k.kind, i.identity),
        format('comment on %s %s is %L', k.kind, i.identity, c.description)
    from thing as t
    join pg_description as c on c.classoid = t.catalog and c.objoid = t.oid
    cross join lateral pg_identify_object(c.classoid, c.objoid, c.objsubid) as i
    cross join lateral (
        select case when c.objsubid > 0 then 'column' when i.type = 'composite type' then 'type' else i.type end
    ) as k (kind)
$$;
