-- Purpose: Returns dead jobs grouped by kind, queue and error code, as a JSON document.
-- Invariant: reads the newest max_looked dead jobs, by an index. Raises: 22004, 22023.
-- Argument max_looked: at most so many dead jobs, 1 to 100000.
-- Returns: a JSON object: looked_at, how many; is_all, whether these are all; groups, an array
-- of objects: kind, queue, error_code, jobs, first_at, last_at, error, errors (how many
-- different ones), workers, attempts, job_id of the newest, and metadata that all have.
-- Example: select jobq_http.show_dead_jobs() -> 'groups';
create or replace function jobq_http.show_dead_jobs(max_looked integer default 10000)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
begin
    perform jobq_private.check_count('max_looked', show_dead_jobs.max_looked, 1, 100000);

    -- Texts are compared byte by byte. A property that all have in common, the newest
    -- has too.
    return (with looked as materialized (
        select a.job_id, a.kind collate "C" as kind, a.queue collate "C" as queue,
            coalesce(a.last_error_code, '') collate "C" as code, a.last_error,
            a.worker collate "C" as worker, a.finished_at,
            a.attempt - a.uncounted as attempts, a.metadata, row_number() over () as n
        from (
            select d.*
            from jobq_private.job_archive as d
            where d.state = 'dead'
            order by d.job_id desc
            limit show_dead_jobs.max_looked + 1
        ) as a
    ),
    grouped as materialized (
        select l.kind, l.queue, l.code, count(*) as jobs, min(l.n) as n,
            min(l.finished_at) as first_at, max(l.finished_at) as last_at,
            count(distinct hashtext(coalesce(l.last_error, ''))) as errors,
            (array_agg(distinct l.worker))[1:5] as workers,
            min(l.attempts) as least_attempts, max(l.attempts) as most_attempts
        from looked as l
        group by l.kind, l.queue, l.code
        order by count(*) desc, max(l.finished_at) desc
        limit 200
    ),
    newest as materialized (
        select g.n, g.kind, g.queue, g.code, l.job_id, left(l.last_error, 300) as error,
            l.metadata
        from grouped as g
        join looked as l on l.n = g.n
    ),
    shared as (
        select n.n, json_object_agg(e.key, e.value order by e.key) as metadata
        from newest as n
        cross join lateral jsonb_each_text(
            case jsonb_typeof(n.metadata) when 'object' then n.metadata end
        ) as e
        where not exists (
            select from looked as l
            where l.kind = n.kind and l.queue = n.queue and l.code = n.code
            and (not l.metadata ? e.key or l.metadata ->> e.key is distinct from e.value)
        )
        group by n.n
    )
    select json_build_object(
        'looked_at', least(show_dead_jobs.max_looked, (select count(*) from looked)),
        'is_all', (select count(*) <= show_dead_jobs.max_looked from looked),
        'groups', coalesce((
            select json_agg(d)
            from (
                select g.kind, g.queue, nullif(g.code, '') as error_code, g.jobs, g.first_at,
                    g.last_at, n.error, g.errors, g.workers, g.least_attempts, g.most_attempts,
                    n.job_id, coalesce(c.metadata, '{}') as metadata
                from grouped as g
                join newest as n on n.n = g.n
                left join shared as c on c.n = g.n
                order by g.jobs desc, g.last_at desc
            ) as d
        ), '[]')
    ));
end
$$;
grant execute on function jobq_http.show_dead_jobs to jobq_operator, jobq_reader;
