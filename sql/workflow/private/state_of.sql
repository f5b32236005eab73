-- Purpose: the state of a job, live or archived; null if it does not exist.
-- Invariant: reads only; finds what get_job() finds.
create or replace function jobq_private.state_of(job_id uuid)
returns text language sql stable as $$
    select coalesce(
        (select j.state from jobq_private.job as j where j.job_id = state_of.job_id),
        (
            select a.state
            from (
                select jobq_private.id_time(state_of.job_id) - interval '1 day' as since offset 0
            ) as t
            join jobq_private.job_archive as a
                on a.job_id = state_of.job_id and a.finished_at >= t.since
            order by a.finished_at desc
            limit 1
        )
    )
$$;
