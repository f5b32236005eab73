-- Purpose: the id at which a search of max_looked jobs, newest first and created before
-- a given one, ends; null if there are no more.
-- Invariant: counts the jobs that a search for these states reads, by descents of indexes in the
-- order of ids, whatever the statistics; running jobs are few and have their own index.
create or replace function jobq_private.look_floor(
    states text[], oldest uuid, before uuid, max_looked integer
)
returns uuid language sql stable set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off set enable_hashagg = off as $$
    with looked as (
        (
            select j.job_id
            from jobq_private.job as j
            where (states is null or states && '{blocked,queued,retrying}')
            and j.job_id < before and j.job_id >= oldest
            order by j.job_id desc
            limit max_looked + 1
        )
        union all
        select r.job_id
        from (
            select j.job_id
            from jobq_private.job as j
            where j.state = 'running'
            and 'running' = any(states) and not states && '{blocked,queued,retrying}'
            offset 0
        ) as r
        where r.job_id < before and r.job_id >= oldest
        union all
        (
            select a.job_id
            from jobq_private.job_archive as a
            where (states is null or 'succeeded' = any(states))
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked + 1
        )
        union all
        select r.job_id
        from unnest('{dead,cancelled}'::text[]) as s (state)
        cross join lateral (
            select a.job_id
            from jobq_private.job_archive as a
            where s.state = any(states) and 'succeeded' <> all(states)
            and a.state = s.state and a.state <> 'succeeded'
            and a.job_id < before and a.job_id >= oldest
            order by a.job_id desc
            limit max_looked + 1
        ) as r
    )
    select f.ids[1]
    from (
        select array(
            select l.job_id from looked as l order by l.job_id desc offset max_looked - 1 limit 2
        ) as ids
    ) as f
    where cardinality(f.ids) = 2
$$;
