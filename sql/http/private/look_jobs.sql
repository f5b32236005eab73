-- Purpose: the jobs that match a filter, newest first.
-- Invariant: reads rows by descents of indexes, live and archived.
-- Argument most: looks at so many at most; the other filters are those of show_jobs().
-- Returns: job_ids of the matches, newest first; is_cut, whether there are more to
-- read; last_id, the last one read, if there are more.
create or replace function jobq_private.look_jobs(
    states text[], kind text, queue text, metadata jsonb, error_code text, worker text,
    payload jsonb, search text, batch_id uuid, since uuid, until uuid, most integer,
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
declare
    _is_any_end constant boolean := 'succeeded' = any (look_jobs.states);
    _is_live constant boolean := not look_jobs.states <@ '{succeeded,dead,cancelled}'::text[];
    -- The text of an id contains only hexadecimal digits and dashes.
    _id constant text := substring(lower(look_jobs.search) from '^[0-9a-f-]{4,36}$') || '%';
    _id_end constant text := '%' || substring(lower(look_jobs.search) from '^[0-9a-f-]{4,36}$');
    _is_leased constant boolean := look_jobs.states = '{running}';
begin
    select
        array_agg(l.job_id) filter (where l.fits and l.n <= look_jobs.most),
        count(*) > look_jobs.most,
        (array_agg(l.job_id) filter (where l.n = look_jobs.most))[1]
    into look_jobs.job_ids, look_jobs.is_cut, look_jobs.last_id
    from (
        select u.job_id, row_number() over () as n,
            u.state = any (look_jobs.states)
            and (look_jobs.kind is null or u.kind = look_jobs.kind)
            and (look_jobs.queue is null or u.queue = look_jobs.queue)
            and (look_jobs.metadata is null or u.metadata @> look_jobs.metadata)
            and (look_jobs.error_code is null or u.last_error_code is not distinct from look_jobs.error_code)
            and (look_jobs.worker is null or u.worker is not distinct from look_jobs.worker)
            and (look_jobs.batch_id is null or u.batch_id is not distinct from look_jobs.batch_id)
            and (
                look_jobs.search is null
                or u.job_id::text like _id or u.job_id::text like _id_end
                or look_jobs.search in (u.idempotency_key, u.dedup_key, u.concurrency_key)
                or position(lower(look_jobs.search) in lower(u.last_error)) > 0
            ) is true
            and (look_jobs.payload is null or u.payload @> look_jobs.payload) as fits
        from (
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata, j.payload, j.worker, j.batch_id,
                    j.last_error_code, j.last_error, j.idempotency_key, j.dedup_key, j.concurrency_key
                from jobq_private.job as j
                where _is_live and not _is_leased and j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc limit look_jobs.most + 1
            )
            union all
            (
                select j.job_id, j.state, j.kind, j.queue, j.metadata, j.payload, j.worker, j.batch_id,
                    j.last_error_code, j.last_error, j.idempotency_key, j.dedup_key, j.concurrency_key
                from (
                    select r.* from jobq_private.job as r where _is_leased and r.state = 'running' offset 0
                ) as j
                where j.job_id < look_jobs.until and j.job_id >= look_jobs.since
                order by j.job_id desc limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata, a.payload, a.worker, a.batch_id,
                    a.last_error_code, a.last_error, a.idempotency_key, a.dedup_key, a.concurrency_key
                from jobq_private.job_archive as a
                where _is_any_end and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata, a.payload, a.worker, a.batch_id,
                    a.last_error_code, a.last_error, a.idempotency_key, a.dedup_key, a.concurrency_key
                from jobq_private.job_archive as a
                where not _is_any_end and 'dead' = any (look_jobs.states) and a.state = 'dead'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc limit look_jobs.most + 1
            )
            union all
            (
                select a.job_id, a.state, a.kind, a.queue, a.metadata, a.payload, a.worker, a.batch_id,
                    a.last_error_code, a.last_error, a.idempotency_key, a.dedup_key, a.concurrency_key
                from jobq_private.job_archive as a
                where not _is_any_end and 'cancelled' = any (look_jobs.states)
                and a.state = 'cancelled'
                and a.job_id < look_jobs.until and a.job_id >= look_jobs.since
                order by a.job_id desc limit look_jobs.most + 1
            )
            order by job_id desc
            limit look_jobs.most + 1
        ) as u
    ) as l;
end
$$;
