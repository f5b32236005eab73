-- Purpose: the reason why a kind cannot run this function: it is missing, or has
-- another signature; null if it can.
create or replace function jobq_private.sql_function_problem(run text)
returns text language sql stable parallel safe as $$
    select format(
        '%s(jsonb) returns jsonb, or the same with jsonb[]; found: %s', sql_function_problem.run,
        coalesce((
            select string_agg(format(
                '%s(%s) returns %s',
                case p.prokind when 'a' then 'aggregate ' when 'p' then 'procedure ' else '' end,
                pg_get_function_arguments(p.oid),
                coalesce(pg_get_function_result(p.oid), 'nothing')
            ), ', ')
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where array[n.nspname, p.proname]::text[] = parse_ident(sql_function_problem.run)
        ), 'none')
    )
    where not exists (select from jobq_private.sql_function(sql_function_problem.run) as f)
$$;
