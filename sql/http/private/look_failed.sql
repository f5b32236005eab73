-- Purpose: the dead or cancelled jobs that match a filter, newest first.
-- Invariant: reads only the index that contains the filter's columns, for pages that
-- are visible to all.
-- Argument most: looks at so many at most; the other filters are those of show_jobs().
-- Returns: job_ids of the matches, newest first; is_cut, whether there are more to
-- read; last_id, the last one read, if there are more.
create or replace function jobq_private.look_failed(
    states text[], kind text, queue text, error_code text,
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_failed.most),
        count(*) > look_failed.most,
        (array_agg(l.job_id) filter (where l.n = look_failed.most))[1]
    into look_failed.job_ids, look_failed.is_cut, look_failed.last_id
    from (
        select u.job_id, row_number() over () as n,
            (look_failed.kind is null or u.kind = look_failed.kind)
            and (look_failed.queue is null or u.queue = look_failed.queue)
            and (
                look_failed.error_code is null
                or u.last_error_code is not distinct from look_failed.error_code
            ) as fits
        from (
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'dead' = any (look_failed.states) and a.state = 'dead'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            union all
            (
                select a.job_id, a.kind, a.queue, a.last_error_code
                from jobq_private.job_archive as a
                where 'cancelled' = any (look_failed.states) and a.state = 'cancelled'
                and a.job_id < look_failed.until and a.job_id >= look_failed.since
                order by a.job_id desc
                limit look_failed.most + 1
            )
            order by job_id desc
            limit look_failed.most + 1
        ) as u
    ) as l;
end
$$;
