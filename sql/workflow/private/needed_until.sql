-- Purpose: until when a finished job past its kind's retention must still be kept: for
-- a while if a child is live or its batch has not ended, else as long as its children
-- are kept; infinity means the general retention, null that nobody needs it.
create or replace function jobq_private.needed_until(
    job_id uuid, batch_id uuid, finished_at timestamptz
)
returns timestamptz language plpgsql stable as $$
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
