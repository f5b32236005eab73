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

    with looked as materialized (
        select a.job_id, a.kind, a.queue, a.last_error_code, a.last_error, a.worker,
            a.finished_at, a.attempt - a.uncounted as attempts, a.metadata
        from jobq_private.job_archive as a
        where a.state = 'dead'
        order by a.job_id desc
        limit show_dead_jobs.max_looked + 1
    ),
    grouped as (
        select l.kind, l.queue, l.last_error_code, count(*) as jobs,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            (array_agg(left(l.last_error, 300) order by l.job_id desc))[1] as error,
            count(distinct l.last_error) as errors,
            (array_agg(distinct l.worker))[1:5] as workers,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts,
            (array_agg(l.job_id order by l.job_id desc))[1] as newest
        from looked as l
        group by l.kind, l.queue, l.last_error_code
        order by count(*) desc, max(l.finished_at) desc
        limit 200
    )
    select json_build_object(
        'looked_at', least(show_dead_jobs.max_looked, (select count(*) from looked)),
        'is_all', (select count(*) <= show_dead_jobs.max_looked from looked),
        'groups', coalesce((
            select json_agg(json_build_object(
                'kind', g.kind, 'queue', g.queue, 'error_code', g.last_error_code,
                'jobs', g.jobs, 'first_at', g.first_at, 'last_at', g.last_at,
                'error', g.error, 'errors', g.errors, 'workers', g.workers,
                'least_attempts', g.least_attempts, 'most_attempts', g.most_attempts,
                'job_id', g.newest, 'metadata', (
                    select coalesce(json_object_agg(c.key, c.value), '{}')
                    from (
                        select e.key, e.value
                        from looked as l
                        cross join jsonb_each_text(l.metadata) as e
                        where l.kind = g.kind and l.queue = g.queue
                        and l.last_error_code is not distinct from g.last_error_code
                        and jsonb_typeof(l.metadata) = 'object'
                        group by e.key, e.value
                        having count(*) = g.jobs
                        order by e.key
                        limit 5
                    ) as c
                )
            ))
            from grouped as g
        ), '[]')
    ) into _document;
    return _document;
end
$$;

revoke all on function jobq_http.show_dead_jobs from public;
grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;

comment on function jobq_http.show_dead_jobs is
'Returns dead jobs by kind, queue and error code, with what each group has in common, as a JSON document.';
