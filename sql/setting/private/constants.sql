-- Purpose: what enqueue() knows of the tables by heart: the functions that are constants, what each
-- should say, and whether it says so.
-- Invariant: reads only. That a kind or queue has rules stays once it is written down, and is looked
-- for until then. The texts do not depend on the session's settings. Raises: nothing.
create or replace function jobq_private.constants()
returns table (name text, schema text, type text, body text, is_right boolean)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set intervalstyle = postgres
as $$
    with written as materialized (
        select
            s.name,
            (
                select p.prosrc from pg_proc as p
                where p.oid = to_regprocedure(format('jobq_private.%s()', s.name))
            ) as body
        from unnest('{defaults,has_kind_rules,has_queue_rules}'::text[]) as s (name)
    )
    select w.name, c.schema, c.type, c.body, w.body is not distinct from c.body
    from written as w
    cross join lateral (
        select 'jobq_private', 'settings', format(
            'select (''default'', %L, %L, interval %L, interval %L, %L, %L, null, null, '
            '%L, %L, null, null, null, false, interval ''10 s'', null, null)'
            '::jobq_private.settings',
            g.priority, g.max_attempts, g.timeout, g.lease, g.dedup,
            g.reuse_key_after_failure, g.max_payload_bytes, g.max_payload_depth
        )
        from jobq_private.setting as g
        where w.name = 'defaults'
        union all
        select 'pg_catalog', 'bool', 'select ' || case
            when w.body = 'select true' then true
            when w.name = 'has_kind_rules' then exists (
                select from jobq_private.kind as k
                where num_nonnulls(
                    k.queue, k.priority, k.max_attempts, k.timeout, k.lease, k.concurrency_key,
                    k.max_running, k.rate_limit, k.keep, k.payload_schema, k.json_schema,
                    k.delivery_version
                ) > 0
            )
            else exists (
                select from jobq_private.queue as q
                where num_nonnulls(
                    q.priority, q.max_attempts, q.timeout, q.lease, q.max_depth
                ) > 0
            )
        end
        where w.name <> 'defaults'
    ) as c (schema, type, body)
$$;

revoke all on function jobq_private.constants from public;

comment on function jobq_private.constants is
'The constants that enqueue() goes by, what each should say, and whether it says so.';
