-- Purpose: jobs that match a filter, newest first. After 100,000 jobs without max_jobs
-- matches, the last row has only a job_id, to pass as `before`.
-- Invariant: reads a thousand jobs first, so that a page that fills quickly is cheap,
-- and at most 100,000, so that a filter without matches is bounded.
create or replace function jobq_private.search_jobs(
    states text[], kind text, queue text, metadata jsonb, idempotency_key text, trigger text,
    error_code text, oldest uuid, before uuid, max_jobs integer
)
returns setof jobq.job
language plpgsql
stable
parallel safe
set plan_cache_mode = force_custom_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _most constant integer := 100000;
    _is_ended constant boolean := coalesce(states <@ '{succeeded,dead,cancelled}', false);
    _until uuid := search_jobs.before;
    _looked integer := 0;
    _part integer := 1000;
    _left integer := search_jobs.max_jobs;
    _floor uuid;
    _found integer;
    _mark jobq.job;
begin
    while _looked < _most loop
        _floor := jobq_private.look_floor(search_jobs.states, oldest, _until, _part);
        return query
        select j.*
        from jobq.job as j
        where j.job_id < _until and j.job_id >= coalesce(_floor, oldest)
        and (search_jobs.states is null or j.state = any(search_jobs.states))
        and (j.finished_at is not null or not _is_ended)
        and (search_jobs.kind is null or j.kind = search_jobs.kind)
        and (search_jobs.queue is null or j.queue = search_jobs.queue)
        and (search_jobs.metadata is null or j.metadata @> search_jobs.metadata)
        and (
            search_jobs.idempotency_key is null
            or j.idempotency_key = search_jobs.idempotency_key
        )
        and (
            search_jobs.trigger is null
            or jobq_private.job_trigger(j) = search_jobs.trigger
        )
        and (
            search_jobs.error_code is null
            or j.last_error_code = search_jobs.error_code
        )
        order by j.job_id desc
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
