-- Purpose: take the idempotency keys of finished jobs that are to be redriven; return the jobs
-- whose key belongs to another job.
-- Invariant: keys are locked in the order of kind and key, like in every batch; free keys by
-- one statement. Of several jobs with the same key, the first gets it. Raises: nothing.
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
    _barred uuid[];
    _job record;
begin
    select
        array_agg(g.job_id) filter (where g.place = 1),
        array_agg(g.kind) filter (where g.place = 1),
        array_agg(g.queue) filter (where g.place = 1),
        array_agg(g.key) filter (where g.place = 1),
        coalesce(array_agg(g.job_id) filter (where g.place > 1), '{}')
    into _keyed, _kinds, _queues, _keys, _barred
    from (
        select
            a.job_id, a.kind, a.queue, a.idempotency_key as key,
            row_number() over (
                partition by a.kind, a.idempotency_key order by a.job_id
            ) as place
        from unnest(bar_redrives.job_ids, bar_redrives.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where a.idempotency_key is not null
    ) as g;
    if _keyed is null then
        return _barred;
    end if;
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
    select g.kind, g.key, g.job_id
    from unnest(_keyed, _kinds, _keys) as g (job_id, kind, key)
    order by g.kind, g.key
    on conflict on constraint idempotency_key_pkey do nothing;

    for _job in
        select g.*
        from unnest(_keyed, _kinds, _queues, _keys) as g (job_id, kind, queue, key)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key
        where k.job_id is distinct from g.job_id
        order by g.kind, g.key
    loop
        if _job.job_id <> jobq_private.hold_key(
            _job.kind, _job.queue, _job.key, _job.job_id
        ) then
            _barred := _barred || _job.job_id;
        end if;
    end loop;
    return _barred;
end
$$;
