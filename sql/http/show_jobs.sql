-- Purpose: Returns jobs that match a filter, newest first and without payloads, and how
-- many of the newest 10,000 match.
-- Invariant: reads at most max_looked jobs, live and archived, starting at `before`, by
-- descents of indexes. The cursor continues the search, so a filter without matches
-- costs no more than one that matches all. Raises: 22004, 22023.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument payload: only jobs whose payload contains this object.
-- Argument search: only jobs whose id begins or ends with this text (at least 4
-- characters), that have it as idempotency key, dedup key or concurrency key, or whose
-- last error contains it; null means all.
-- Argument batch_id: only members of this batch; null means all.
-- Argument job_ids: only these; null means all.
-- Argument max_jobs: at most so many in items, 1 to 1000.
-- Argument max_looked: at most so many jobs are looked at, 1 to 100000.
-- Argument with_ids: whether to return job_ids, for actions on exactly these jobs.
-- Returns: a JSON object: items; matched, how many of the jobs that were read match;
-- is_all, whether all jobs were read; cursor, the value of `before` to continue, or
-- null; job_ids, of all matches, newest first, or null.
-- Example: select jobq_http.show_jobs('{dead}', error_code => 'TIMEOUT') ->> 'matched';
create or replace function jobq_http.show_jobs(
    states text[] default null, kind text default null, queue text default null,
    created_after timestamptz default null, created_before timestamptz default null,
    metadata jsonb default null, error_code text default null, worker text default null,
    payload jsonb default null, search text default null, batch_id uuid default null,
    job_ids uuid[] default null, before uuid default null, max_jobs integer default 50,
    max_looked integer default 10000, with_ids boolean default false
)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
    _since constant uuid := coalesce(
        jobq_private.id_floor(show_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _until constant uuid := least(
        show_jobs.before, jobq_private.id_floor(show_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _floor uuid;
    _ids uuid[];
    _shown uuid[];
begin
    perform jobq_private.check_count('max_jobs', show_jobs.max_jobs, 1, 1000);
    perform jobq_private.check_count('max_looked', show_jobs.max_looked, 1, 100000);
    perform jobq_private.check_states(show_jobs.states);

    if show_jobs.job_ids is null then
        _floor := jobq_private.look_floor(show_jobs.states, _since, _until, show_jobs.max_looked);
    end if;
    _ids := array(
        select m.job_id
        from jobq_private.match_jobs(
            show_jobs.states, coalesce(_floor, _since), _until, show_jobs.kind, show_jobs.queue,
            show_jobs.metadata, show_jobs.error_code, null, null, show_jobs.worker,
            show_jobs.payload, show_jobs.search, show_jobs.batch_id, show_jobs.job_ids
        ) as m
        order by m.job_id desc
    );
    _shown := _ids[:show_jobs.max_jobs];
    return json_build_object(
        'items', (
            select coalesce(json_agg(i order by i.job_id desc), '[]')
            from (
                select j.job_id, j.kind, j.queue, j.state, j.priority, j.attempts, j.max_attempts,
                    j.worker, j.created_at, j.run_at, j.claimed_at as started_at, j.finished_at,
                    j.last_error_code, left(j.last_error, 200) as last_error
                from jobq.job as j
                where j.job_id = any(_shown)
            ) as i
        ),
        'matched', cardinality(_ids),
        'is_all', _floor is null,
        'cursor', case
            when cardinality(_ids) > show_jobs.max_jobs then _shown[show_jobs.max_jobs]
            else _floor
        end,
        'job_ids', case when show_jobs.with_ids then _ids end
    );
end
$$;
grant execute on function jobq_http.show_jobs to jobq_operator, jobq_reader;
