-- Purpose: let the keys start again that are held for one of these dead jobs, where
-- that has been deleted, pruned or redriven.
-- Invariant: looks for the jobs themselves, so that it does not matter who removed
-- them.
create or replace function jobq_private.release_dead_keys(job_ids uuid[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _rows jobq_private.waiting_key[];
begin
    with released as (
        update jobq_private.limit_state as g
        set held_until = '-infinity', hold_reason = null, dead_job_id = null
        where g.ctid = any(array(
            select o.ctid
            from jobq_private.limit_state as o
            where o.dead_job_id = any(release_dead_keys.job_ids)
            and not exists (
                select from jobq_private.job_archive as a
                where a.job_id = o.dead_job_id and a.state = 'dead'
            )
            for update skip locked
        ))
        returning g.queue, g.concurrency_key
    )
    select array_agg(w) into _rows
    from released as r
    join jobq_private.waiting_key as w
        on w.queue = r.queue and w.concurrency_key = r.concurrency_key;
    perform jobq_private.open_again(_rows);
end
$$;
