-- Purpose: Lists the statements that make an empty database a router. Only for
-- jobq_owner.
-- Invariant: reads only. Raises: nothing.
-- Column ordinal: position of the statement.
-- Column statement: one SQL statement.
-- Returns: one row per statement.
-- Example: select statement from jobq_internal.list_router_statements() order by ordinal limit 1;
create or replace function jobq_internal.list_router_statements()
returns table (ordinal integer, statement text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (row_number() over (order by s.part, s.name collate "C", s.statement collate "C"))::integer, s.statement
    from (
        select 1, t.typname::text, format('create type %s as (%s)', t.oid::regtype, (
            select string_agg(
                quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                order by a.attnum
            )
            from pg_attribute as a
            where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        ))
        from pg_type as t
        where t.typnamespace = 'jobq'::regnamespace
        and t.oid in (select p.prorettype from pg_proc as p where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace))
        union all
        select 2, 'error', format(
            'create view jobq_private.error (code, sqlstate, http_status, message, hint) as values %s',
            string_agg(format(
                '(%L, %L, %s::smallint, %L, %L)',
                e.code, e.sqlstate, e.http_status, e.message, e.hint
            ), ', ' order by e.code)
        )
        from jobq_private.error as e
        union all
        select 3, 'error', 'grant select on jobq_private.error '
            'to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader'
        union all
        select 3, p.proname, pg_get_functiondef(p.oid)
        from pg_proc as p
        left join jobq_private.route as r on r.function_name = p.proname
        where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace) and r.class = 'own'
        or p.oid = 'jobq_private.raise_error'::regproc
        union all
        select 4, f.name, c.statement
        from jobq_private.routed_function as f
        cross join lateral jobq_private.router_calls(f) as c
        union all
        select 5, f.name, jobq_private.router_function(f)
        from jobq_private.routed_function as f
        where f.class <> 'own'
        union all
        select d.part, p.proname, d.statement
        from pg_proc as p
        cross join lateral (
            values
            (6, format(
                'comment on function %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')
            )),
            (6, (
                select format('alter function %s owner to jobq_owner', p.oid::regprocedure)
                from jobq_private.route as r
                where r.function_name = p.proname and r.class = 'own'
            )),
            (7, format('revoke all on function %s from public', p.oid::regprocedure))
        ) as d (part, statement)
        where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
        and d.statement is not null
        union all
        select 8, p.proname, format(
            'grant all on function %s to %s', p.oid::regprocedure, string_agg(
                quote_ident(r.rolname), ', ' order by r.rolname
            )
        )
        from pg_proc as p
        cross join lateral aclexplode(p.proacl) as a
        join pg_roles as r on r.oid = a.grantee
        where p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
        and r.rolname in ('jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader')
        group by p.oid, p.proname
    ) as s (part, name, statement)
$$;
