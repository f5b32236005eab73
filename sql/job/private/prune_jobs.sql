-- Purpose: forget finished jobs that their kind keeps for less than the global retention.
-- Invariant: a bounded number at a call, the longest overdue first, found by an index of
-- such jobs alone; not while a job that waited for one is live, or its batch; what somebody holds is left to the next call. Idempotency keys stay for
-- their own retention. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _gone uuid[];
begin
    with due as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.prune_at < now()
        and not jobq_private.is_needed(a.job_id, a.is_awaited, a.batch_id, now())
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ),
    gone as (
        delete from jobq_private.job_archive as a
        using due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        returning a.job_id
    )
    select array_agg(g.job_id) into _gone from gone as g;
    if _gone is not null then
        perform jobq_private.forget_traces(_gone);
    end if;
    return coalesce(cardinality(_gone), 0);
end
$$;

revoke all on function jobq_private.prune_jobs from public;

comment on function jobq_private.prune_jobs is
'Forgets finished jobs that their kind keeps for less than the global retention.';
