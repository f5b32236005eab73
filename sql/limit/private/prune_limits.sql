-- Purpose: delete limits without usage, and expired holds. Returns the number of rows.
-- Invariant: reads a sample of limits. Keeps those with waiting jobs, so that no claim finds them
-- locked; those charged within a minute, so that a repeatable snapshot that has not seen that
-- start fails at them; and those of an order whose first job lives, or holds the key until its
-- redrive.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint language plpgsql as $$
declare
    _percent constant double precision := (
        select least(100, 1000.0 * max_rows / greatest(1, c.reltuples))
        from pg_class as c
        where c.oid = 'jobq_private.limit_state'::regclass
    );
    _scopes constant jobq_private.scope[] := array(
        select row(o.limit_id, o.queue, o.kind, o.concurrency_key)::jobq_private.scope
        from jobq_private.limit_state as o tablesample system (_percent)
        where coalesce(o.charged_at < now() - interval '1 min', true)
        order by random() limit prune_limits.max_rows  -- limit_usage() compares it with all queues
    );
    _pruned bigint;
begin
    with forgotten as (
        delete from jobq_private.limit_state as g
        where g.ctid = any(array(
            select o.ctid
            from jobq_private.limit_usage(_scopes, now()) as u
            join jobq_private.limit_state as o on o.limit_id = u.limit_id
            where coalesce(u.rate_used, 0) = 0 and u.spent = 0
            and coalesce(o.charged_at < now() - interval '1 min', true)
            and not exists (select from jobq_private.job as j where j.job_id = o.first_job_id)
            and not exists (
                select from jobq_private.limit_hold as h where h.dead_job_id = o.first_job_id
            )
            and not exists (
                select from jobq_private.waiting_key as w
                where w.key_id = o.limit_id or w.full_kind = o.kind
            )
            for update of o skip locked
        ))
        returning 1
    ),
    ended as (
        delete from jobq_private.limit_hold as h
        where h.ctid = any(array(
            select o.ctid
            from jobq_private.limit_hold as o
            where o.held_until < now()
            limit prune_limits.max_rows
            for update skip locked
        ))
        returning 1
    )
    select count(*) into _pruned from (table forgotten union all table ended) as p;
    return _pruned;
end
$$;
