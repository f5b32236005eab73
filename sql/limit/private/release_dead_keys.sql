-- Purpose: release the keys that are held for one of these dead jobs, if the job has
-- been deleted, pruned or redriven, by any writer.
create or replace function jobq_private.release_dead_keys(job_ids uuid[])
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
declare
    _rows jobq_private.waiting_key[];
begin
    with released as (
        delete from jobq_private.limit_hold as h
        where h.dead_job_id = any(release_dead_keys.job_ids)
        and not exists (
            select from jobq_private.job_archive as a
            where a.job_id = h.dead_job_id and a.state = 'dead'
        )
        returning h.queue, h.concurrency_key
    )
    select array_agg(w) into _rows
    from released as r
    join jobq_private.waiting_key as w
        on w.queue = r.queue and w.concurrency_key = r.concurrency_key;
    perform jobq_private.open_again(_rows);
end
$$;
