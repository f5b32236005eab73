-- Purpose: delete what belongs to jobs that leave no trace, and call the hook on_end().
-- Invariant: the caller has locked or deleted the jobs.
create or replace function jobq_private.follow_endings(endings jobq_private.ending[])
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _gone uuid[];
    _since timestamptz;
begin
    -- Nothing of a job is older than its id, so that the partitions of earlier days are passed over.
    select array_agg(e.job_id), jobq_private.id_time((array_agg(e.job_id order by e.job_id))[1])
    into _gone, _since
    from unnest(endings) as e
    where e.is_gone;
    if _gone is not null then
        delete from jobq_private.attempt as a
        where a.job_id = any(_gone) and a.finished_at >= _since - interval '1 day';
        delete from jobq_private.job_log as l
        where l.job_id = any(_gone) and l.logged_at >= _since - interval '1 day';
    end if;
    perform jobq_private.on_end(endings);
end
$$;
