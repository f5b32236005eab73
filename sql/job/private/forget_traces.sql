-- Purpose: forget what jobs that go have left beside their own rows: failed attempts, log,
-- steps and waits. Signals, which no index finds by the job, stay for the retention of events.
-- Invariant: nothing of it is older than the oldest of these jobs, so that partitions of the
-- days before are passed over. The caller holds the jobs' rows,
-- and may know that none of them has failed before. Raises: nothing.
create or replace function jobq_private.forget_traces(
    job_ids uuid[], have_failed boolean default true
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _since constant timestamptz := (
        select jobq_private.id_time(u.job_id) - interval '1 day'
        from unnest(forget_traces.job_ids) as u (job_id)
        order by u.job_id
        limit 1
    );
begin
    if have_failed then
        delete from jobq_private.attempt as a
        where a.job_id = any(forget_traces.job_ids) and a.finished_at >= _since;
    end if;
    delete from jobq_private.job_log as l
    where l.job_id = any(forget_traces.job_ids) and l.logged_at >= _since;
    delete from jobq_private.step as s where s.job_id = any(forget_traces.job_ids);
    delete from jobq_private.waiter as w where w.job_id = any(forget_traces.job_ids);
end
$$;

revoke all on function jobq_private.forget_traces from public;

comment on function jobq_private.forget_traces is
'Forgets failed attempts, log, steps and waits of jobs that go.';
