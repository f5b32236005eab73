-- Purpose: those of these jobs whose called jobs have all ended, with the ends saved as steps.
-- Invariant: the caller has locked the jobs, and looks for live children with a later snapshot.
-- So of two children that end together, the later transaction finds both. A child that the login
-- may not see may be live.
create or replace function jobq_private.settle_calls(job_ids uuid[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    -- From the last one: children mostly end in order, so a live one is found soon.
    _settled constant uuid[] := array(
        select i.job_id
        from unnest(settle_calls.job_ids) as i (job_id)
        where (
            select true
            from jobq_private.waiter as w
            where w.job_id = i.job_id and w.needs_all and (
                (
                    select true
                    from jobq_private.job as c
                    where c.job_id = jobq_private.ended_job(w.event)
                )
                or not _sees_all
                and jobq_private.state_of(jobq_private.ended_job(w.event)) is null
            )
            order by w.event desc
            limit 1
        ) is null
    );
begin
    with settled as (
        delete from jobq_private.waiter as w
        where w.job_id = any(_settled) and w.needs_all
        returning w.job_id, w.event
    )
    insert into jobq_private.step (job_id, name, value, attempt)
    select
        s.job_id, 'event:' || s.event,
        jsonb_build_object('outcome', 'arrived', 'payload', e.payload), j.attempt
    from settled as s
    join jobq_private.job as j on j.job_id = s.job_id
    cross join lateral (select jobq_private.ended_job(s.event) offset 0) as c (child_id)
    cross join lateral jobq_private.child_end(c.child_id) as e
    -- by the index, whatever the statistics say
    where j.job_id = any(_settled)
    on conflict on constraint step_pkey do nothing;
    return _settled;
end
$$;
