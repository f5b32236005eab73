-- Purpose: store jobs prepared by store_jobs(), some of which have keys; return their ids, or of
-- the jobs that hold their keys.
-- Invariant: unique indexes decide between concurrent callers.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_keyed_jobs(jobs jobq_private.new_job[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
set jit = off as $$
declare
    _job jobq_private.new_job;
    _stored uuid[];
    _ids uuid[];
begin
    -- The slot of a schedule is taken once, and holds no key.
    select jobq_private.take_idempotency_keys(
        array_agg(j.job_id), array_agg(j.kind),
        array_agg(case when j.schedule_id is null then j.idempotency_key end)
    ) into _ids
    from unnest(store_keyed_jobs.jobs) as j;
    -- At once all but those whose dedup key a live job or another of these jobs has.
    _stored := jobq_private.on_store(array(
        select f.job
        from (
            select j as job, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(store_keyed_jobs.jobs) as j
            where _ids[j.ordinal] = j.job_id
        ) as f
        -- A limit keeps the planner from reading all live jobs instead.
        left join lateral (
            select true
            from jobq_private.job as l
            where l.kind = (f.job).kind and l.dedup_key = (f.job).dedup_key
            limit 1
        ) as l (is_live) on true
        where (f.job).dedup_key is null or (f.job).dedup = 'enqueue'
        or f.place = 1 and (f.job).dedup <> 'throttle' and l.is_live is null
        order by case when (f.job).dedup_key is not null then (f.job).kind end nulls first,
            (f.job).dedup_key, (f.job).ordinal
    ));
    for _job in
        select j.*
        from unnest(store_keyed_jobs.jobs) as j
        where _ids[j.ordinal] = j.job_id
        and j.job_id not in (select s.job_id from unnest(_stored) as s (job_id))  -- hashed
        order by j.kind, j.dedup_key, j.ordinal
    loop
        _ids[_job.ordinal] := jobq_private.store_dedup_job(_job);
    end loop;
    -- Of two jobs with one idempotency key the second stands for what the first has become.
    return array(
        select coalesce(k.job_id, _ids[j.ordinal])
        from unnest(store_keyed_jobs.jobs) as j
        left join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
            and _ids[j.ordinal] <> j.job_id
        order by j.ordinal
    );
end
$$;
