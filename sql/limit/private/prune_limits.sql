-- Purpose: forget limits that remember nothing, and costs reported by attempts that
-- have ended. Returns how many rows.
-- Invariant: looks at ten times as many limits as it may delete, from a random one on,
-- and at the costs of what runs. A limit for which jobs wait stays, so that no
-- claim finds it locked by this call; so does one charged within a minute: a repeatable
-- snapshot that has not seen that start fails at it.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint
language plpgsql
as $$
declare
    _from constant uuid := gen_random_uuid();
    _limits bigint;
    _costs bigint;
begin
    delete from jobq_private.limit_state as g
    where g.ctid = any(array(
        select o.ctid
        from (
            (
                select g.limit_id
                from jobq_private.limit_state as g
                where g.limit_id >= _from
                order by g.limit_id
                limit 10 * prune_limits.max_rows
            )
            union all
            (
                select g.limit_id
                from jobq_private.limit_state as g
                where g.limit_id < _from
                order by g.limit_id
                limit 10 * prune_limits.max_rows
            )
            limit 10 * prune_limits.max_rows
        ) as s
        join jobq_private.limit_state as o on o.limit_id = s.limit_id
        cross join lateral jobq_private.limit_rule(o.queue, o.kind, o.concurrency_key) as r
        where coalesce(jobq_private.level(o.level, o.charged_at, r.spacing, now()), 0) = 0
        and (
            (r.budget).amount is null
            or jobq_private.budget_spent(r.budget, o.spent, o.charged_at, now()) = 0
        )
        and o.held_until < now()
        and coalesce(o.charged_at < now() - interval '1 min', true)
        and not exists (select from jobq_private.job as j where j.job_id = o.head_job_id)
        and not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = o.limit_id or w.limit_id = o.limit_id
        )
        limit prune_limits.max_rows
        for update of o skip locked
    ));
    get diagnostics _limits = row_count;
    delete from jobq_private.reported_cost as r
    where r.ctid = any(array(
        select o.ctid
        from jobq_private.reported_cost as o
        where not exists (
            select from jobq_private.job as j
            where j.job_id = o.job_id and j.attempt = o.attempt and j.state = 'running'
        )
        limit prune_limits.max_rows
        for update skip locked
    ));
    get diagnostics _costs = row_count;
    return _limits + _costs;
end
$$;
