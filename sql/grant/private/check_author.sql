-- Purpose: check that the author of a schedule may add its jobs and those of its graph.
-- Invariant: uses the present grants and the rules for the author's own jobs: a granted
-- queue, a kind that belongs to no other queue, and keys only with a kind of one's own.
-- Reads only. Raises: 42501.
create or replace function jobq_private.check_author(
    login text, queue text, kind text, dedup text, graph jsonb
)
returns boolean language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    _held text[];
    _enqueued text[];
begin
    select array_agg(g.queue), array_agg(g.queue) filter (where g.privilege = 'enqueue')
    into _held, _enqueued
    from pg_catalog.pg_roles as r
    cross join lateral (
        select q.queue, q.privilege
        from jobq_private.queue_grant as q
        where pg_has_role(r.oid, q.grantee, 'usage')
        union all
        select '*', 'enqueue' where pg_has_role(r.oid, 'jobq_owner', 'usage')
    ) as g
    where r.rolname = check_author.login;

    perform jobq_private.check_problem('ENQUEUE_DENIED', (
        select format('queue %s, kind %s, log-in %s', coalesce(j.queue, 'of the kind'), j.kind, login)
        from (
            select check_author.queue, check_author.kind, o.queue, check_author.dedup <> 'enqueue'
            from (values (1)) as one (n)
            left join jobq_private.kind_queue as o on o.kind = check_author.kind
            union all
            select
                coalesce(n.node ->> 'queue', o.queue, 'default'), n.node ->> 'kind', o.queue, false
            from jsonb_array_elements(check_author.graph -> 'jobs') as n (node)
            left join jobq_private.kind_queue as o on o.kind = n.node ->> 'kind'
        ) as j (queue, kind, kind_queue, has_key)
        where not (
            coalesce(_enqueued, '{}') && array['*', j.queue]
            and case
                when j.kind_queue is not null or j.has_key
                then coalesce(_held, '{}') && array['*', j.kind_queue]
                else true
            end
        )
        limit 1
    ));
    return true;
end
$$;
