-- Purpose: which transactions keep claims from looking at the limits of a job: they have claimed a job
-- with the same limit, or are about to, and have not committed.
-- Invariant: reads only. The lock is on the row of the limit or lane, or on the making of it. Raises: nothing.
create or replace function jobq_private.limit_locks(job_id uuid)
returns table (scope text, pid integer)
language sql
stable
as $$
    select distinct on (l.pid) g.scope, l.pid
    from jobq_private.job as j
    cross join lateral (
        select concat_ws(', ', r.scope, 'concurrency_key ' || r.concurrency_key) as scope, r.limit_id
        from jobq_private.job_limits(j) as r
        union all
        select jobq_private.lane_name(j), j.lane_id where j.lane_id is not null
    ) as g
    join pg_catalog.pg_locks as l
        on l.granted and l.pid is distinct from pg_backend_pid()
        and (
            l.locktype = 'transactionid' and l.transactionid in (
                select h.xmax from jobq_private.limit_state as h where h.limit_id = g.limit_id
                union all
                select n.xmax from jobq_private.lane as n where n.lane_id = g.limit_id
            )
            or l.locktype = 'advisory'
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.classid in (
                jobq_private.lock_class('gating')::oid, jobq_private.lock_class('laning')::oid
            )
            and l.objid = jobq_private.lane_slot(g.limit_id)::oid
        )
    where j.job_id = limit_locks.job_id
    order by l.pid, g.scope
$$;
