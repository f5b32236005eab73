-- Purpose: how those of these jobs have ended that are not live; a deleted one is gone.
-- Invariant: called jobs are kept as long as their callers; see needed_until(). Inlined, so no SET
-- clause, if its argument is a variable.
create or replace function jobq_private.child_ends(child_ids uuid[])
returns table (child_id uuid, payload jsonb, finished_at timestamptz)
language sql
stable
as $$
    select
        c.child_id,
        jsonb_build_object(
            'job_id', c.child_id, 'state', coalesce(a.state, 'gone'), 'result', a.result,
            'error_code', a.last_error_code, 'error', a.last_error
        ),
        coalesce(a.finished_at, '-infinity')
    from unnest(child_ends.child_ids) as c (child_id)
    left join (
        select distinct on (l.job_id)
            l.job_id, l.state, l.result, l.last_error_code, l.last_error, l.finished_at
        from jobq_private.job_archive as l
        where l.job_id = any(child_ends.child_ids)
        and l.finished_at >= (
            select jobq_private.id_time(i.job_id) - interval '1 day'
            from unnest(child_ends.child_ids) as i (job_id)
            order by i.job_id
            limit 1
        )
        order by l.job_id, l.finished_at desc
    ) as a on a.job_id = c.child_id
    -- no join: one could read all jobs by a plan of an empty table
    where (select true from jobq_private.job as j where j.job_id = c.child_id limit 1) is null
$$;
