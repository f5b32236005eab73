-- Purpose: which transactions have claimed or locked a due job, or a limit that it needs,
-- for explain().
-- Invariant: reads only; no row if nothing is locked.
create or replace function jobq_private.explain_locks(job_id uuid)
returns table (reason text, explanation text)
language sql
stable
as $$
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
        from jobq_private.limit_locks(explain_locks.job_id) as g
    ) as l (what, pid, does)
$$;
