-- Purpose: until when a finished job that its kind keeps no longer is to be kept all the same: for
-- a while yet when a job that waited for it is live, or its batch has not ended; else as long as
-- such a job is kept; infinity stands for the retention of all, null means that nobody needs it.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.needed_until(
    job_id uuid, batch_id uuid, finished_at timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
as $$
begin
    return case
        when exists (
            select from jobq_private.edge as e
            join jobq_private.job as j on j.job_id = e.child
            where e.parent = needed_until.job_id
        )
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = needed_until.batch_id and b.ended_at is null
        )
        then now() + (now() - needed_until.finished_at) / 8
        else (
            select max(coalesce(a.prune_at, 'infinity'))
            from jobq_private.edge as e
            cross join lateral (
                select c.prune_at from jobq_private.job_archive as c
                where c.job_id = e.child
                and c.finished_at >= jobq_private.id_time(e.child) - interval '1 day'
            ) as a
            where e.parent = needed_until.job_id
        )
    end;
end
$$;
