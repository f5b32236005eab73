-- Purpose: take the idempotency keys of finished jobs that are to be redriven, and return the jobs
-- whose key belongs to another job.
create or replace function jobq_private.bar_redrives(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
begin
    return array(
        with keyed as materialized (
            select a.job_id, a.kind, a.queue, a.idempotency_key as key
            from unnest(bar_redrives.job_ids, bar_redrives.finished_ats)
                as c (job_id, finished_at)
            join jobq_private.job_archive as a
                on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
                and a.finished_at = c.finished_at and a.finished_at between _first and _last
            where a.idempotency_key is not null
        ),
        holder as materialized (
            select unnest(jobq_private.take_idempotency_keys(
                array_agg(f.job_id), array_agg(f.kind), array_agg(f.queue), array_agg(f.key)
            )) as job_id
            from (
                select distinct on (k.kind, k.key) k.*
                from keyed as k
                order by k.kind, k.key, k.job_id
            ) as f
        )
        select k.job_id
        from keyed as k
        where k.job_id not in (select h.job_id from holder as h)
    );
end
$$;
