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
    _keyed uuid[];
    _kinds text[];
    _queues text[];
    _keys text[];
    _holders uuid[];
begin
    select
        array_agg(a.job_id), array_agg(a.kind), array_agg(a.queue), array_agg(a.idempotency_key)
    into _keyed, _kinds, _queues, _keys
    from (
        select a.*
        from unnest(bar_redrives.job_ids, bar_redrives.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.idempotency_key is not null
        order by a.kind, a.idempotency_key, a.job_id
    ) as a;
    if _keyed is null then
        return '{}'::uuid[];
    end if;
    select jobq_private.hold_keys(
        array_agg(g.job_id), array_agg(g.kind), array_agg(g.queue), array_agg(g.key)
    ) into _holders
    from (
        select distinct on (g.kind, g.key) g.*
        from unnest(_keyed, _kinds, _queues, _keys) as g (job_id, kind, queue, key)
        order by g.kind, g.key, g.job_id
    ) as g;
    return array(
        select k from unnest(_keyed) as k where k not in (select h from unnest(_holders) as h)
    );
end
$$;
