-- Purpose: the hook on_forget() of a full installation: jobs for which others wait or
-- have waited, and members of batches.
-- Invariant: see sql/job/private/on_forget.sql. Who does not see all queues may not see
-- who needs a job: it is then put off by the least time, for others to look.
create or replace function jobq_private.on_forget(
    first timestamptz, last timestamptz, job_ids uuid[], max_jobs integer
)
returns table (job_id uuid, needed_until timestamptz) language plpgsql stable set jit = off
set enable_seqscan = off as $$
#variable_conflict use_column
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
begin
    if on_forget.job_ids is null then
        return query
        select n, timestamptz 'infinity'
        from jobq_private.needed_jobs(
            on_forget.first::date, (now() - (select g.retention from jobq_private.setting as g))::date
        ) as n
        limit on_forget.max_jobs;
        return;
    end if;
    return query
    select n.job_id, n.needed_until
    from (
        select a.job_id, case
            when _sees_all
            then jobq_private.needed_until(a.job_id, a.batch_id, a.finished_at)
            when a.batch_id is not null
                or exists (select from jobq_private.edge as e where e.parent = a.job_id)
            then '-infinity'
        end as needed_until
        from jobq_private.job_archive as a
        where a.job_id = any(on_forget.job_ids)
        and a.finished_at between on_forget.first and on_forget.last
    ) as n
    where n.needed_until is not null;
end
$$;
