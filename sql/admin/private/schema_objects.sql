-- Purpose: the objects of jobq's schemas, each with a statement that creates it, or its
-- properties, in an order in which they can be created.
-- Invariant: reads only. Omits partitions, row security and storage parameters.
-- Argument prefix: the common prefix of the names of the schemas.
create or replace function jobq_private.schema_objects(prefix text default 'jobq')
returns table (object text, definition text, nth bigint) language sql stable
set search_path = pg_catalog, pg_temp
-- in which definitions are printed
set datestyle = 'ISO' set intervalstyle = 'postgres' set timezone = 'UTC'
set standard_conforming_strings = on set quote_all_identifiers = off as $$
    with space as (
        select n.oid, n.nspname from pg_namespace as n
        where n.nspname ~ format('^%s(_http|_internal|_private)?$', prefix)
    ),
    relation as (
        select c.*, c.oid::regclass::text as name,
            case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end as kind
        from pg_class as c
        join space as s on s.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'S', 'c') and not c.relispartition
    ),
    found (rank, made, object, definition) as (
        select 1, s.oid, 'schema ' || s.nspname, null from space as s
        union all
        select 1, r.oid, format('%s %s', r.kind, r.name),
            concat_ws(' ', r.kind, r.relpersistence::text, pg_get_partkeydef(r.oid))
        from relation as r
        where r.kind <> 'view'
        union all
        select 1, t.oid, format('type %s', t.oid::regtype), concat_ws(
            ' ', t.typtype::text, format_type(t.typbasetype, t.typtypmod), (
                select string_agg(pg_get_constraintdef(k.oid), ' ' order by k.conname)
                from pg_constraint as k
                where k.contypid = t.oid
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
        select 3, p.oid, format('routine %s', p.oid::regprocedure),
            pg_get_functiondef(p.oid)
        from pg_proc as p
        join space as s on s.oid = p.pronamespace
        union all
        select 3, r.oid, 'view ' || r.name, format('create or replace view %s%s as %s', r.name,
            ' with (' || array_to_string(r.reloptions, ', ') || ')', pg_get_viewdef(r.oid))
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
            select from pg_constraint as k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
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
        select a.rank, a.made, a.object, a.definition from jobq_private.schema_access(prefix) as a
    )
    select f.object, f.definition, row_number() over (order by f.rank, f.made, f.object)
    from found as f
$$;
