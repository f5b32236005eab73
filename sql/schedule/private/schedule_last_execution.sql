-- Purpose: the execution of a schedule's version that started last, or null.
-- Invariant: one descent of the index on schedules for each partition; live ones first,
-- for they are the later. Raises: nothing.
create or replace function jobq_private.schedule_last_execution(schedule_id uuid)
returns json
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    return (
        select json_build_object(
            'execution_id', j.job_id,
            'status', jobq_private.execution_status(j.state, j.run_at),
            'started_at', j.claimed_at,
            'completed_at', j.finished_at,
            'attempt_number', j.attempts
        )
        from jobq.job as j
        where j.schedule_id = schedule_last_execution.schedule_id
        and (j.state in ('running', 'retrying') or j.finished_at is not null)
        order by j.slot_at desc
        limit 1
    );
end
$$;

revoke all on function jobq_private.schedule_last_execution from public;

comment on function jobq_private.schedule_last_execution is
'Returns the execution of a schedule''s version that started last, or null.';
