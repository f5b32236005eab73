-- Purpose: which transactions have claimed or locked a due job, or a limit that it needs,
-- for explain(): they have claimed a job under the same limit, or are about to, and have
-- not committed.
-- Invariant: reads only; no row if nothing is locked.
create or replace function jobq_private.explain_locks(job_id uuid)
returns table (reason text, explanation text) language sql stable as $$
    select 'locked', l.what || coalesce(
        'the transaction of process ' || l.pid, 'a prepared transaction'
    ) || l.does
    from (
        select '', x.pid, ' has claimed or locked it and has not committed'
        from jobq_private.job as j
        join pg_locks as x
            on x.locktype = 'transactionid' and x.transactionid = j.xmax and x.granted
        where j.job_id = explain_locks.job_id and x.pid is distinct from pg_backend_pid()
        union all
        select g.scope || ': ', g.pid, ' has claimed, and has not committed'
        from (
            select distinct on (x.pid) x.pid, s.scope
            from jobq_private.job as j
            cross join lateral jobq_private.job_limits(j) as i
            cross join lateral concat_ws(
                ', ', coalesce('kind ' || i.kind, 'queue ' || i.queue),
                'concurrency_key ' || i.concurrency_key
            ) as s (scope)
            join pg_locks as x on x.granted and x.pid is distinct from pg_backend_pid() and (
                x.locktype = 'transactionid' and x.transactionid = (
                    select g.xmax from jobq_private.limit_state as g where g.limit_id = i.limit_id
                )
                or x.locktype = 'advisory'
                and x.database = (select d.oid from pg_database as d where d.datname = current_database())
                and x.classid = jobq_private.lock_class('making')::oid
                and x.objid = jobq_private.lock_slot(i.limit_id)::oid
            )
            where j.job_id = explain_locks.job_id
            order by x.pid, s.scope
        ) as g
    ) as l (what, pid, does)
$$;
