-- Purpose: lock runnable jobs of a queue that have no lane, at the priority of a mark and from it
-- on, in their order; what others have touched only in a second pass (see claim()). What the claim
-- has locked itself (locked) bears another number than its transaction's within a savepoint.
-- Invariant: one range of job_ready_idx. SKIP LOCKED. Hot: its callers pin the search path, and
-- that the index is read in its order. Raises: nothing.
create or replace function jobq_private.find_jobs(
    queue text, mark jobq_private.claim_mark, now timestamptz, max_jobs integer,
    except_kinds text[], is_second boolean, locked tid[]
)
returns tid[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return array(
        select j.ctid
        from jobq_private.job as j
        where j.queue = find_jobs.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and j.priority = mark.priority
        and (j.run_at, j.job_id) >= (mark.run_at, mark.job_id)
        and j.run_at <= find_jobs.now
        and (find_jobs.except_kinds is null or j.kind <> all(find_jobs.except_kinds))
        and (
            is_second
            or j.xmax = '0'
            or j.xmax = pg_current_xact_id_if_assigned()::xid
            or j.ctid = any(locked)
            or age(j.xmax) > (select jobq_private.touched_age(pg_current_snapshot()))
        )
        order by j.run_at, j.job_id
        limit find_jobs.max_jobs
        for update skip locked
    );
end
$$;

revoke all on function jobq_private.find_jobs from public;

comment on function jobq_private.find_jobs is
'Locks runnable jobs of a queue at the priority of a mark.';
