-- Purpose: repair live jobs that bypassed the triggers, for example by
-- session_replication_role = replica or an incomplete restore, if the repair is
-- unambiguous: a running job without a lease is retried, or dead without attempts left;
-- a waiting one that is due at no time is due by its run_at; a finished one moves to the archive.
-- Invariant: only by legal changes of state; health() reports the rest. job_odd_idx
-- contains only such jobs. Returns how many.
create or replace function jobq_private.heal_jobs(max_rows integer)
returns bigint language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _odd uuid[];
begin
    _odd := array(
        select j.job_id
        from jobq_private.job as j
        where j.state not in ('queued', 'running', 'retrying', 'blocked')
        or (j.state = 'running') <> (j.lease_expires_at is not null)
        or j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null
        limit heal_jobs.max_rows
        for update skip locked
    );
    update jobq_private.job as j
    set
        state = case
            when j.attempt - j.uncounted < j.max_attempts then 'retrying' else 'dead'
        end,
        last_error_code = 'LEASE_EXPIRED', last_error = 'it ran without a lease',
        last_error_details = null
    where j.job_id = any(_odd) and j.state = 'running';

    update jobq_private.job as j
    set due_at = j.run_at
    where j.job_id = any(_odd)
    and j.state in ('queued', 'retrying') and j.key_id is null and j.due_at is null;

    perform jobq_private.archive_jobs(array_agg(j.job_id), array_agg(j.attempt), j.state)
    from jobq_private.job as j
    join jobq_private.transition as t
        on t.from_state = j.previous_state and t.to_state = j.state
    where j.job_id = any(_odd) and j.state in ('succeeded', 'dead', 'cancelled')
    group by j.state;
    return (
        select count(*)
        from unnest(_odd) as o (job_id)
        left join jobq_private.job as j on j.job_id = o.job_id
        where j.job_id is null
        or j.state in ('queued', 'retrying') and j.lease_expires_at is null
    );
end
$$;
