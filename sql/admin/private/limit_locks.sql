-- Purpose: the transactions that keep claims from looking at the limits of a job: they
-- have claimed a job under the same limit, or are about to, and have not committed.
create or replace function jobq_private.limit_locks(job_id uuid)
returns table (scope text, pid integer)
language sql
stable
as $$
    select distinct on (l.pid)
        concat_ws(
            ', ', coalesce('kind ' || s.kind, 'queue ' || s.queue),
            'concurrency_key ' || s.concurrency_key
        ), l.pid
    from jobq_private.job as j
    cross join lateral jobq_private.job_limits(j) as s
    join pg_catalog.pg_locks as l
        on l.granted and l.pid is distinct from pg_backend_pid()
        and (
            l.locktype = 'transactionid' and l.transactionid = (
                select g.xmax from jobq_private.limit_state as g where g.limit_id = s.limit_id
            )
            or l.locktype = 'advisory'
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.classid = jobq_private.lock_class('making')::oid
            and l.objid = jobq_private.lock_slot(s.limit_id)::oid
        )
    where j.job_id = limit_locks.job_id
    order by l.pid, 1
$$;
