-- Purpose: how a job that another one has called has ended; no row while it is live. A deleted
-- one is gone.
-- Invariant: a child is kept as long as its caller; see needed_until(). For a login with some
-- queues, one that it may not see is live.
create or replace function jobq_private.child_end(
    child_id uuid, out payload jsonb, out finished_at timestamptz
)
returns setof record language sql stable as $$
    select
        jsonb_build_object(
            'job_id', child_end.child_id, 'state', coalesce(a.state, 'gone'),
            'result', a.result, 'error_code', a.last_error_code, 'error', a.last_error
        ),
        coalesce(a.finished_at, '-infinity')
    from (select jobq_private.id_time(child_end.child_id) - interval '1 day' as since) as t
    left join lateral (
        select l.*
        from jobq_private.job_archive as l
        where l.job_id = child_end.child_id and l.finished_at >= t.since
        order by l.finished_at desc
        limit 1
    ) as a on true
    -- no join: one could read all jobs by a plan of an empty table
    where (select true from jobq_private.job as j where j.job_id = child_end.child_id limit 1) is null
    and (a.job_id is not null or jobq_private.worked_queues() is null)
$$;
