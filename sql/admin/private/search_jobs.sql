-- Purpose: jobs that match a filter, newest first. After 100,000 jobs without max_jobs
-- matches, the last row has only a job_id, to pass as `before`. null matches all.
-- Invariant: reads a thousand jobs first, so that a page that fills quickly is cheap,
-- and at most 100,000, so that a filter without matches is bounded.
create or replace function jobq_private.search_jobs(
    states text[], kind text, queue text, metadata jsonb, idempotency_key text, trigger text,
    error_code text, oldest uuid, before uuid, max_jobs integer
)
returns setof jobq.job language plpgsql stable set plan_cache_mode = force_custom_plan
set jit = off set enable_seqscan = off as $$
declare
    _most constant integer := 100000;
    _since constant uuid := coalesce(oldest, '00000000-0000-0000-0000-000000000000');
    _until uuid := coalesce(search_jobs.before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    _looked integer := 0;
    _part integer := 1000;
    _left integer := search_jobs.max_jobs;
    _floor uuid;
    _found integer;
    _mark jobq.job;
begin
    while _looked < _most loop
        _floor := jobq_private.look_floor(search_jobs.states, _since, _until, _part);
        return query
        select m.*
        from jobq_private.match_jobs(
            search_jobs.states, coalesce(_floor, _since), _until, search_jobs.kind,
            search_jobs.queue, search_jobs.metadata, error_code, trigger,
            search_jobs.idempotency_key
        ) as m
        order by m.job_id desc
        limit _left;
        get diagnostics _found = row_count;
        _left := _left - _found;
        if _left = 0 or _floor is null then
            return;
        end if;
        _until := _floor;
        _looked := _looked + _part;
        _part := least(10 * _part, _most - _looked);
    end loop;
    _mark.job_id := _floor;
    return next _mark;
end
$$;
