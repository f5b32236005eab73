-- Purpose: dead jobs by kind, queue and error code, with what each group has in common.
-- Invariant: looks at the newest max_looked dead jobs, by an index. Raises: 22004, 22023.
-- Argument max_looked: at most so many dead jobs, 1 to 100000.
-- Returns: a JSON object: looked_at, how many; is_all, whether these are all; groups, an array
-- of objects: kind, queue, error_code, jobs, first_at, last_at, error, errors (how many
-- different ones), workers, attempts, job_id of the newest, and metadata that all have.
-- Example: select jobq_http.show_dead_jobs() -> 'groups';
create or replace function jobq_http.show_dead_jobs(max_looked integer default 10000)
returns json
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _document json;
begin
    if show_dead_jobs.max_looked is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_looked');
    elsif show_dead_jobs.max_looked not between 1 and 100000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_looked must be from 1 to 100000'
        );
    end if;

    -- Texts are compared byte by byte, and all that is common is found in one pass.
    with looked as materialized (
        select a.job_id, a.kind collate "C" as kind, a.queue collate "C" as queue,
            coalesce(a.last_error_code, '') collate "C" as code, a.last_error,
            a.worker collate "C" as worker, a.finished_at,
            a.attempt - a.uncounted as attempts, a.metadata
        from jobq_private.job_archive as a
        where a.state = 'dead'
        order by a.job_id desc
        limit show_dead_jobs.max_looked + 1
    ),
    grouped as materialized (
        select l.kind, l.queue, l.code, count(*) as jobs,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            count(distinct hashtext(l.last_error)) as errors,
            (array_agg(distinct l.worker))[1:5] as workers,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts
        from looked as l
        group by l.kind, l.queue, l.code
        order by count(*) desc, max(l.finished_at) desc
        limit 200
    ),
    newest as (
        select distinct on (l.kind, l.queue, l.code)
            l.kind, l.queue, l.code, l.job_id, left(l.last_error, 300) as error
        from looked as l
        order by l.kind, l.queue, l.code, l.job_id desc
    ),
    said as (
        select l.kind, l.queue, l.code, e.key, e.value, count(*) as jobs
        from looked as l
        cross join jsonb_each_text(l.metadata) as e
        where l.metadata <> '{}' and jsonb_typeof(l.metadata) = 'object'
        group by l.kind, l.queue, l.code, e.key, e.value
    ),
    common as (
        select s.kind, s.queue, s.code, json_object_agg(s.key, s.value order by s.key) as metadata
        from said as s
        join grouped as g
        on g.kind = s.kind and g.queue = s.queue and g.code = s.code and g.jobs = s.jobs
        group by s.kind, s.queue, s.code
    )
    select json_build_object(
        'looked_at', least(show_dead_jobs.max_looked, (select count(*) from looked)),
        'is_all', (select count(*) <= show_dead_jobs.max_looked from looked),
        'groups', coalesce((
            select json_agg(json_build_object(
                'kind', g.kind, 'queue', g.queue, 'error_code', nullif(g.code, ''),
                'jobs', g.jobs, 'first_at', g.first_at, 'last_at', g.last_at,
                'error', n.error, 'errors', g.errors, 'workers', g.workers,
                'least_attempts', g.least_attempts, 'most_attempts', g.most_attempts,
                'job_id', n.job_id, 'metadata', coalesce(c.metadata, '{}')
            ) order by g.jobs desc, g.last_at desc)
            from grouped as g
            join newest as n on n.kind = g.kind and n.queue = g.queue and n.code = g.code
            left join common as c
            on c.kind = g.kind and c.queue = g.queue and c.code = g.code
        ), '[]')
    ) into _document;
    return _document;
end
$$;

revoke all on function jobq_http.show_dead_jobs from public;
grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_dead_jobs is
'Returns dead jobs by kind, queue and error code, with what each group has in common, as a JSON document.';
