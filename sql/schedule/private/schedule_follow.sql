-- Purpose: set the next slot of from_completion schedules whose last job has ended.
-- Invariant: one statement finds a job in either the live table or the archive; a job
-- in neither ended long ago. SKIP LOCKED.
create or replace function jobq_private.schedule_follow(max_schedules integer)
returns void
language plpgsql
set jit = off
set enable_seqscan = off
as $$
begin
    with ended as materialized (
        select s.schedule_id, s.awaited_job_id, s.last_tick_at, s.every
        from jobq_private.schedule as s
        where s.status = 'active' and s.awaited_job_id is not null
        and not exists (
            select from jobq_private.job as j where j.job_id = s.awaited_job_id
        )
        limit schedule_follow.max_schedules
        for no key update skip locked
    ),
    timed as materialized (
        select e.schedule_id, greatest(e.last_tick_at, coalesce((
            select max(a.finished_at)
            from jobq_private.job_archive as a
            where a.job_id = e.awaited_job_id
            and a.finished_at >= jobq_private.id_time(e.awaited_job_id)
        ), now())) + e.every as next_run_at
        from ended as e
    )
    update jobq_private.schedule as s
    set
        awaited_job_id = null,
        next_run_at = case
            when t.next_run_at < coalesce(s.ends_at, 'infinity') then t.next_run_at
        end
    from timed as t
    where s.schedule_id = t.schedule_id and s.awaited_job_id is not null;
end
$$;
