-- Purpose: Returns workers and their jobs as a JSON document.
-- Invariant: reads the workers and at most 10,000 running jobs. Raises: nothing.
-- Returns: a JSON array of objects, live workers first: worker, queues, started_at,
-- seen_at, is_live, jobs (how many it runs), oldest (the job that it has run for the
-- longest time: job_id, kind, started_at), kinds (an object: how many of each), region,
-- except_kinds (kinds without a handler), release, stuck.
-- Example: select jobq_http.show_workers();
create or replace function jobq_http.show_workers()
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return (
        with leased as materialized (
            select j.worker, j.job_id, j.kind, j.claimed_at
            from jobq_private.job as j
            where j.state = 'running'
            limit 10000
        ),
        held as (
            select k.worker, sum(k.jobs) as jobs, json_object_agg(k.kind, k.jobs) as kinds
            from (
                select l.worker, l.kind, count(*) as jobs from leased as l group by 1, 2
            ) as k
            group by k.worker
        ),
        oldest as (
            select distinct on (l.worker) l.worker, l.job_id, l.kind, l.claimed_at as started_at
            from leased as l
            order by l.worker, l.claimed_at
        )
        select coalesce(json_agg(d), '[]')
        from (
            select w.worker, w.queues, w.started_at, w.seen_at, i.is_live,
                coalesce(h.jobs, 0) as jobs, coalesce(h.kinds, '{}') as kinds,
                (
                    select row_to_json(f)
                    from (select o.job_id, o.kind, o.started_at where o.worker is not null) as f
                ) as oldest,
                w.region, w.except_kinds, w.release, w.stuck
            from jobq_private.worker as w
            cross join lateral (select w.seen_at > now() - interval '1 min') as i (is_live)
            left join held as h on h.worker = w.worker
            left join oldest as o on o.worker = w.worker
            order by i.is_live desc, w.worker
            limit 500
        ) as d
    );
end
$$;
grant execute on function jobq_http.show_workers to jobq_operator, jobq_reader;
