-- Purpose: Lists the statements that make an empty database a router. Only for jobq_owner.
-- Invariant: reads only. Raises: nothing.
-- Column ordinal: position of the statement.
-- Column statement: one SQL statement.
-- Example: select statement from jobq_internal.list_router_statements() order by ordinal limit 1;
create or replace function jobq_internal.list_router_statements()
returns table (ordinal integer, statement text) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
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
        select 3, f.name, pg_get_functiondef(f.signature)
        from jobq_private.routed_function as f
        where f.class = 'own'
        union all
        select 3, p.name, pg_get_functiondef(to_regproc('jobq_private.' || p.name))
        from unnest('{raise_error,check_given,check_argument,check_problem}'::text[]) as p (name)
        union all
        select 4, f.name, c.statement
        from jobq_private.routed_function as f
        cross join lateral jobq_private.router_calls(f) as c
        union all
        select 5, f.name, jobq_private.router_function(f)
        from jobq_private.routed_function as f
        where f.class <> 'own'
        union all
        select d.part, f.name, format(d.form, f.signature, d.value)
        from jobq_private.routed_function as f
        cross join lateral (
            values
            (6, 'comment on function %s is %L', obj_description(f.signature, 'pg_proc')),
            (6, 'alter function %s owner to %s', case f.class when 'own' then 'jobq_owner' end),
            (7, 'revoke all on function %s from %s', 'public'),
            (8, 'grant all on function %s to %s', (
                select string_agg(r.rolname, ', ' order by r.rolname)
                from pg_proc as p
                cross join lateral aclexplode(p.proacl) as a
                join pg_roles as r on r.oid = a.grantee
                where p.oid = f.signature
                and r.rolname in ('jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader')
            ))
        ) as d (part, form, value)
        where d.value is not null
    ) as s (part, name, statement)
$$;
