-- Purpose: set the next slot of from_completion schedules whose last job has ended. only_id
-- limits it to one schedule.
-- Invariant: one statement locks and the next one reads, so its snapshot includes what
-- others have committed: another call may have stored the next job meanwhile. SKIP LOCKED.
-- A job in neither table ended long ago.
create or replace function jobq_private.schedule_follow(
    max_schedules integer, only_id uuid default null
)
returns void language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _ids constant uuid[] := array(
        select s.schedule_id
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and (schedule_follow.only_id is null or s.schedule_id = schedule_follow.only_id)
        and not exists (select from jobq_private.job as j where j.job_id = s.awaited_job_id)
        limit schedule_follow.max_schedules
        for no key update skip locked
    );
begin
    with ended as materialized (
        select s.schedule_id, greatest(s.last_tick_at, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = s.awaited_job_id
            and a.finished_at >= jobq_private.id_time(s.awaited_job_id)
        ), now())) + s.every as next_run_at
        from jobq_private.schedule as s
        where s.schedule_id = any(_ids) and s.awaited_job_id is not null
        and not exists (select from jobq_private.job as j where j.job_id = s.awaited_job_id)
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when e.next_run_at < coalesce(s.ends_at, 'infinity') then e.next_run_at
        end
    from ended as e
    where s.schedule_id = e.schedule_id;
end
$$;
