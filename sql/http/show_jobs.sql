-- Purpose: jobs that fit a filter, newest first, without payloads, and how many there are.
-- Invariant: looks at max_looked jobs at most, live ones and archived, from `before` on,
-- each by a descent of an index; what lies behind is told by the cursor, so a filter that
-- nothing fits costs no more than one that all jobs fit. Raises: 22004, 22023.
-- Argument states: only these; null means all.
-- Argument kind: only this kind; null means all.
-- Argument queue: only this queue; null means all.
-- Argument created_after: only those made at this instant or later.
-- Argument created_before: only those made before this instant.
-- Argument metadata: only those whose metadata contain this object.
-- Argument error_code: only those whose last error has this code; null means all.
-- Argument worker: only those that this worker runs, or ran last; null means all.
-- Argument before: only jobs made before this one; null for the first page.
-- Argument max_jobs: at most so many in items, 1 to 1000.
-- Argument max_looked: at most so many jobs are looked at, 1 to 100000.
-- Returns: a JSON object: items; matched, how many of those looked at fit; is_all, whether
-- nothing was left to look at; cursor, what `before` takes to go on, or null.
-- Example: select jobq_http.show_jobs('{dead}', error_code => 'TIMEOUT') ->> 'matched';
create or replace function jobq_http.show_jobs(
    states text[] default null,
    kind text default null,
    queue text default null,
    created_after timestamptz default null,
    created_before timestamptz default null,
    metadata jsonb default null,
    error_code text default null,
    worker text default null,
    before uuid default null,
    max_jobs integer default 50,
    max_looked integer default 10000
)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _ended constant text[] := '{succeeded,dead,cancelled}'::text[];
    _rare constant text[] := '{dead,cancelled}'::text[];
    _all constant text[] := array(select distinct t.to_state from jobq_private.transition as t);
    _states constant text[] := coalesce(show_jobs.states, _all);
    _is_live constant boolean := not _states <@ _ended;
    _is_leased constant boolean := _states = '{running}';
    _from constant uuid := coalesce(
        jobq_private.id_floor(show_jobs.created_after),
        '00000000-0000-0000-0000-000000000000'
    );
    _to constant uuid := least(
        show_jobs.before, jobq_private.id_floor(show_jobs.created_before),
        'ffffffff-ffff-ffff-ffff-ffffffffffff'
    );
    _document json;
begin
    if num_nulls(show_jobs.max_jobs, show_jobs.max_looked) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs and max_looked');
    elsif show_jobs.max_jobs not between 1 and 1000
        or show_jobs.max_looked not between 1 and 100000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'max_jobs must be from 1 to 1000, max_looked from 1 to 100000');
    elsif not _states <@ _all or array_position(_states, null) is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'states are ' || array_to_string(_all, ', '));
    end if;

    with looked as materialized (
        select l.*, row_number() over () as n
        from (
            select u.job_id, u.kind, u.queue, u.state, u.created_at, u.run_at, u.claimed_at,
                u.finished_at, u.worker, u.priority, u.attempts, u.max_attempts,
                u.last_error_code, u.last_error,
                u.state = any (_states)
                and (show_jobs.kind is null or u.kind = show_jobs.kind)
                and (show_jobs.queue is null or u.queue = show_jobs.queue)
                and (show_jobs.metadata is null or u.metadata @> show_jobs.metadata)
                and (
                    show_jobs.error_code is null
                    or u.last_error_code is not distinct from show_jobs.error_code
                )
                and (
                    show_jobs.worker is null
                    or u.worker is not distinct from show_jobs.worker
                ) as fits
            from (
                (
                    select j.job_id, j.kind, j.queue, j.state, j.created_at, j.run_at,
                        j.claimed_at, null::timestamptz as finished_at, j.worker, j.priority,
                        j.attempt - j.uncounted as attempts, j.max_attempts,
                        j.last_error_code, j.last_error, j.metadata
                    from jobq_private.job as j
                    where _is_live and not _is_leased
                    and j.job_id < _to and j.job_id >= _from
                    order by j.job_id desc
                    limit show_jobs.max_looked + 1
                )
                union all
                (
                    select j.job_id, j.kind, j.queue, j.state, j.created_at, j.run_at,
                        j.claimed_at, null::timestamptz, j.worker, j.priority,
                        j.attempt - j.uncounted, j.max_attempts,
                        j.last_error_code, j.last_error, j.metadata
                    from (
                        select l.*
                        from jobq_private.job as l
                        where _is_leased and l.state = 'running'
                        offset 0
                    ) as j
                    where j.job_id < _to and j.job_id >= _from
                    order by j.job_id desc
                    limit show_jobs.max_looked + 1
                )
                union all
                (
                    select a.job_id, a.kind, a.queue, a.state, a.created_at, a.run_at,
                        a.claimed_at, a.finished_at, a.worker, a.priority,
                        a.attempt - a.uncounted, a.max_attempts,
                        a.last_error_code, a.last_error, a.metadata
                    from jobq_private.job_archive as a
                    where 'succeeded' = any (_states)
                    and a.job_id < _to and a.job_id >= _from
                    order by a.job_id desc
                    limit show_jobs.max_looked + 1
                )
                union all
                select r.*
                from unnest(_rare) as s (state)
                cross join lateral (
                    select a.job_id, a.kind, a.queue, a.state, a.created_at, a.run_at,
                        a.claimed_at, a.finished_at, a.worker, a.priority,
                        a.attempt - a.uncounted, a.max_attempts,
                        a.last_error_code, a.last_error, a.metadata
                    from jobq_private.job_archive as a
                    where s.state = any (_states) and 'succeeded' <> all (_states)
                    and a.state = s.state and a.state <> 'succeeded'
                    and a.job_id < _to and a.job_id >= _from
                    order by a.job_id desc
                    limit show_jobs.max_looked + 1
                ) as r
            ) as u
            order by u.job_id desc
            limit show_jobs.max_looked + 1
        ) as l
    ),
    counted as (
        select
            count(*) > show_jobs.max_looked as is_cut,
            count(*) filter (where l.fits and l.n <= show_jobs.max_looked) as matched,
            (array_agg(l.job_id) filter (where l.n = show_jobs.max_looked))[1] as last
        from looked as l
    ),
    shown as materialized (
        select f.*
        from looked as f
        where f.fits and f.n <= show_jobs.max_looked
        order by f.n
        limit show_jobs.max_jobs
    )
    select json_build_object(
        'items', coalesce((
            select json_agg(json_build_object(
                'job_id', f.job_id, 'kind', f.kind, 'queue', f.queue, 'state', f.state,
                'priority', f.priority, 'attempts', f.attempts,
                'max_attempts', f.max_attempts, 'worker', f.worker,
                'created_at', f.created_at, 'run_at', f.run_at,
                'started_at', f.claimed_at, 'finished_at', f.finished_at,
                'last_error_code', f.last_error_code,
                'last_error', left(f.last_error, 200)
            ) order by f.n)
            from shown as f
        ), '[]'),
        'matched', c.matched,
        'is_all', not c.is_cut,
        'cursor', case
            when c.matched > show_jobs.max_jobs then (
                select f.job_id from shown as f order by f.n desc limit 1
            )
            when c.is_cut then c.last
        end
    ) into _document
    from counted as c;
    return _document;
end
$$;

revoke all on function jobq_http.show_jobs from public;
grant execute on function jobq_http.show_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_jobs is
'Returns jobs that fit a filter, newest first and without payloads, and how many fit among the newest 10,000.';
