-- Purpose: forget limits at which nothing is spent or held, and costs that attempts which have ended reported.
-- Invariant: a bounded number at a call. A limit for which a lane waits stays, so that no claim finds
-- it locked by this call; so does one charged within a minute: a repeatable snapshot that has not seen
-- that start fails at it. Returns how many. Raises: nothing.
create or replace function jobq_private.prune_limits(max_rows integer)
returns bigint
language plpgsql
as $$
declare
    _limits bigint;
begin
    delete from jobq_private.limit_state as g
    where g.ctid = any (array(
        select o.ctid
        from jobq_private.limit_state as o
        where (
            o.queue is not null
            or not exists (
                select from jobq_private.kind as k
                where k.kind = o.kind and num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
            )
        )
        and coalesce(o.idle_at < now(), true)
        and o.held_until < now()
        and coalesce(o.charged_at < now() - interval '1 min', true)
        and not exists (select from jobq_private.job as j where j.job_id = o.head_job_id)
        and not exists (select from jobq_private.lane as l where l.lane_id = o.limit_id)
        limit prune_limits.max_rows
        for update skip locked
    ));
    get diagnostics _limits = row_count;
    delete from jobq_private.reported_cost as r
    where r.ctid = any (array(
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
