-- Purpose: the objects of jobq's schemas, each with a statement that creates it, or its
-- properties.
-- Invariant: reads only. Omits partitions, the body of own_shard() and row security,
-- and storage parameters. Raises: nothing.
-- Argument prefix: the common prefix of the names of the schemas.
create or replace function jobq_private.schema_objects(prefix text default 'jobq')
returns table (object text, definition text, nth bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    with space as (
        select n.oid, n.nspname, n.nspowner, n.nspacl
        from pg_namespace as n
        where n.nspname = any (array[
            prefix, prefix || '_http', prefix || '_internal', prefix || '_private'
        ])
    ),
    routine as (
        select p.*, p.oid::regprocedure::text as name
        from pg_proc as p
        join space as s on s.oid = p.pronamespace
    ),
    relation as (
        select
            c.*, c.oid::regclass::text as name,
            case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end as kind
        from pg_class as c
        join space as s on s.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'S', 'c') and not c.relispartition
    ),
    -- Kinds in an order in which they can be created; objects of a kind in the order of
    -- creation.
    found (rank, made, object, definition) as (
        select 1, s.oid, 'schema ' || s.nspname, null
        from space as s
        union all
        select 1, r.oid, format('%s %s', r.kind, r.name), concat_ws(
            ' ', r.kind, r.relpersistence::text, pg_get_partkeydef(r.oid)
        )
        from relation as r
        where r.kind <> 'view'
        union all
        select 1, t.oid, format('type %s', t.oid::regtype), concat_ws(
            ' ', t.typtype::text, format_type(t.typbasetype, t.typtypmod), (
                select string_agg(pg_get_constraintdef(k.oid), ' ' order by k.conname)
                from pg_constraint as k
                where k.contypid = t.oid
            ), (
                select string_agg(e.enumlabel, ' ' order by e.enumsortorder)
                from pg_enum as e
                where e.enumtypid = t.oid
            )
        )
        from pg_type as t
        join space as s on s.oid = t.typnamespace
        where t.typtype in ('d', 'e')
        union all
        select 1, r.oid, format('column %s.%I', r.name, a.attname), concat_ws(
            ' ', format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
            a.attidentity::text, a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid),
            case when r.kind = 'type' then a.attnum end
        )
        from relation as r
        join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where r.kind in ('table', 'type')
        union all
        -- Objects that jobq_owner does not own, including partitions.
        select 2, o.oid, format('owner of %s %s', o.kind, o.name), o.owner::regrole::text
        from (
            select s.oid, 'schema', quote_ident(s.nspname), s.nspowner from space as s
            union all
            select r.oid, 'routine', r.name, r.proowner from routine as r
            union all
            select t.oid, 'type', t.oid::regtype::text, t.typowner
            from pg_type as t
            join space as s on s.oid = t.typnamespace
            where t.typtype in ('d', 'e')
            union all
            select
                c.oid, case c.relkind when 'v' then 'view' when 'c' then 'type' else 'table' end,
                c.oid::regclass::text, c.relowner
            from pg_class as c
            join space as s on s.oid = c.relnamespace
            where c.relkind in ('r', 'p', 'v', 'c')
            or c.relkind = 'S' and not exists (
                -- A column's sequence has the owner of its table.
                select from pg_depend as d
                where d.classid = 'pg_class'::regclass and d.objid = c.oid
                and d.deptype in ('a', 'i') and d.refobjsubid > 0
            )
        ) as o (oid, kind, name, owner)
        where o.owner <> (select g.oid from pg_roles as g where g.rolname = 'jobq_owner')
        union all
        select 3, r.oid, 'routine ' || r.name, case
            when r.proname = 'own_shard' then 'any' else pg_get_functiondef(r.oid)
        end
        from routine as r
        union all
        select 3, r.oid, 'view ' || r.name, format(
            'create or replace view %s%s as %s', r.name,
            ' with (' || array_to_string(r.reloptions, ', ') || ')', pg_get_viewdef(r.oid)
        )
        from relation as r
        where r.kind = 'view'
        union all
        select 4, t.oid, format('trigger %I on %s', t.tgname, r.name), pg_get_triggerdef(t.oid)
            || case when t.tgenabled not in ('O', 'A') then ' -- is disabled' else '' end
        from relation as r
        join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal
        union all
        select 5, i.indexrelid, 'index ' || i.indexrelid::regclass,
            replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
            || case when not i.indisvalid then ' -- is invalid' else '' end
        from relation as r
        join pg_index as i on i.indrelid = r.oid
        where not exists (
            select from pg_constraint as k
            where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
        )
        union all
        select 6, k.oid, format('constraint %I on %s', k.conname, r.name),
            format('alter table %s add constraint %I %s', r.name, k.conname, pg_get_constraintdef(k.oid))
            || case when exists (
                select from pg_trigger as t where t.tgconstraint = k.oid and t.tgenabled not in ('O', 'A')
            ) then ' -- is disabled' else '' end
        from relation as r
        join pg_constraint as k on k.conrelid = r.oid and k.contype not in ('n', 't')
        union all
        select 7, p.oid, format('policy %I on %s', p.polname, r.name), concat_ws(
            ' ', format('create policy %I on %s', p.polname, r.name),
            case when not p.polpermissive then 'as restrictive' end,
            'for ' || case p.polcmd
                when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
                when 'd' then 'delete' else 'all'
            end,
            'using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
            'with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'
        )
        from relation as r
        join pg_policy as p on p.polrelid = r.oid
        union all
        select 8, g.oid, t.text, t.text
        from (
            select s.oid, 'schema', quote_ident(s.nspname), coalesce(s.nspacl, acldefault('n', s.nspowner)), s.nspowner
            from space as s
            union all
            select r.oid, 'routine', r.name, coalesce(r.proacl, acldefault('f', r.proowner)), r.proowner
            from routine as r
            union all
            select r.oid, case r.kind when 'sequence' then 'sequence' else 'table' end, r.name, r.relacl, r.relowner
            from relation as r
        ) as g (oid, kind, name, acl, owner)
        cross join lateral aclexplode(g.acl) as a
        left join pg_roles as h on h.oid = a.grantee
        cross join lateral format(
            'grant %s on %s %s to %s', lower(a.privilege_type), g.kind, g.name,
            coalesce(h.rolname, 'public')
        ) as t (text)
        where a.grantee <> g.owner
        and coalesce(h.rolname, 'public') in (
            'public', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
        )
        union all
        select 9, c.objoid, format('comment on %s %s', i.type, i.identity),
            format('comment on %s %s is %L', i.type, i.identity, c.description)
        from (
            select 'pg_proc'::regclass as catalog, r.oid from routine as r
            union all
            select 'pg_class', r.oid from relation as r
            union all
            select 'pg_namespace', s.oid from space as s
        ) as o
        join pg_description as c on c.classoid = o.catalog and c.objoid = o.oid
        cross join lateral (
            select
                case when c.objsubid > 0 then 'column'
                    when i.type = 'composite type' then 'type' else i.type end, i.identity
            from pg_identify_object(c.classoid, c.objoid, c.objsubid) as i
        ) as i (type, identity)
    )
    select f.object, f.definition, row_number() over (order by f.rank, f.made, f.object)
    from found as f
$$;
