-- Purpose: store new jobs that use more than the core: they come under their limit, and
-- are linked to what they wait for.
-- Invariant: replaces the core's hook of this name. Raises: 22004, 22023, JQ001, JQ002, JQ010.
create or replace function jobq_private.on_store(jobs jobq_private.new_job[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
set jit = off as $$
declare
    _jobs jobq_private.new_job[] := on_store.jobs;
    _linked jobq_private.new_job[];
    _stored uuid[];
    _has_links boolean := false;
    _has_keys boolean := false;
begin
    for _n in 1 .. cardinality(_jobs) loop
        _has_links := _has_links or num_nonnulls(_jobs[_n].after, _jobs[_n].batch_id) > 0;
        if _jobs[_n].concurrency_key is not null or _jobs[_n].is_limited then
            _jobs[_n].key_id := jobq_private.key_of(
                _jobs[_n].queue, _jobs[_n].kind, _jobs[_n].concurrency_key, _jobs[_n].is_limited
            );
            _has_keys := true;
        end if;
    end loop;
    _stored := jobq_private.insert_jobs(_jobs);
    if _has_links then
        _linked := array(
            select j
            from unnest(_jobs) as j
            where num_nonnulls(j.after, j.batch_id) > 0
            and (
                cardinality(_stored) = cardinality(_jobs)
                or j.job_id in (select s.job_id from unnest(_stored) as s (job_id))  -- hashed
            )
        );
        perform jobq_private.attach_jobs(_linked);
    end if;
    if _has_keys then
        perform jobq_private.open_keys(_stored);
    end if;
    return _stored;
end
$$;
