-- Purpose: forget limits that remember nothing, and costs reported by attempts that
-- have ended. Returns how many limits.
-- Invariant: a bounded number at a call. A limit for which jobs wait stays, so that no
-- claim finds it locked by this call; so does one charged within a minute: a repeatable
-- snapshot that has not seen that start fails at it.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint
language plpgsql
as $$
declare
    _limits bigint;
begin
    delete from jobq_private.limit_state as g
    where g.ctid = any(array(
        select o.ctid
        from jobq_private.limit_state as o
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
    return _limits;
end
$$;
