-- Purpose: lock the jobs of a queue that a claim takes next, by priority, then due_at; return
-- where they are. kinds, except_kinds and a priority narrow it down.
-- Invariant: SKIP LOCKED. A scan begins at the cursor, where the last one of this session ended.
-- If it finds nothing there, and twice a second, it begins at the watermarks, for jobs that were
-- committed late or whose claim was rolled back. Callers pin the planner's settings.
create or replace function jobq_private.find_jobs(
    queue text, max_jobs integer, except_kinds text[] default null, kinds text[] default null,
    priority integer default null
)
returns tid[] language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint jobq_private.claim_hint := jobq_private.read_hint(find_jobs.queue, _now);
    _found tid[];
begin
    if _hint.priorities = '{}' then
        return '{}'::tid[];
    elsif _hint.priorities is null and find_jobs.priority is null then
        _hint := jobq_private.keep_hint(_hint, _now);
        return jobq_private.find_jobs_from_head(queue, max_jobs, except_kinds, kinds);
    elsif _now >= _hint.refresh_at or find_jobs.kinds is not null then
        _hint.priority := null;
    end if;
    for _pass in 1 .. 2 loop
        -- One range of the index for each priority; the loop over them stops at max_jobs. The last
        -- job is the next cursor, unless other kinds may wait before it. Without one, also when
        -- the first pass has found nothing, all ranges begin at their watermarks.
        select
            array_agg(f.ctid),
            (array_agg(f.priority) filter (where find_jobs.kinds is null))[count(*)],
            (array_agg(f.due_at) filter (where find_jobs.kinds is null))[count(*)],
            (array_agg(f.job_id) filter (where find_jobs.kinds is null))[count(*)]
        into _found, _hint.priority, _hint.due_at, _hint.job_id
        from (
            select f.*
            from unnest(
                coalesce(_hint.priorities, array[find_jobs.priority]),
                coalesce(_hint.watermarks, '{-infinity}')
            ) as p (priority, watermark)
            cross join lateral (
                select j.ctid, j.priority, j.due_at, j.job_id
                from jobq_private.job as j
                where j.queue = find_jobs.queue and j.priority = p.priority
                and j.state in ('queued', 'retrying')
                and (j.due_at, j.job_id) >= (
                    case when p.priority = _hint.priority then _hint.due_at else p.watermark end,
                    case
                        when p.priority = _hint.priority then _hint.job_id
                        else '00000000-0000-0000-0000-000000000000'
                    end
                )
                and j.due_at <= _now
                and (find_jobs.except_kinds is null or j.kind <> all(find_jobs.except_kinds))
                and (find_jobs.kinds is null or j.kind = any(find_jobs.kinds))
                -- If another session has claimed the row since this snapshot, FOR UPDATE would
                -- lock its new version, skip it because it runs, and keep the lock until the
                -- commit. So the first pass leaves rows that an open transaction has touched.
                and (
                    _pass = 2 or j.xmax = '0' or j.xmax = j.xmin
                    or j.xmax = pg_current_xact_id_if_assigned()::xid
                    or age(j.xmax) > age(pg_snapshot_xmax(pg_current_snapshot())::xid)
                    and j.xmax <> all(array(select x::xid from pg_snapshot_xip(pg_current_snapshot()) as x))
                )
                order by j.due_at, j.job_id
                limit find_jobs.max_jobs
                for update skip locked
            ) as f
            where find_jobs.priority is null or p.priority = find_jobs.priority
            limit find_jobs.max_jobs
        ) as f;
        exit when _found is not null;
    end loop;
    if _found is not null or _now >= _hint.refresh_at then
        _hint := jobq_private.keep_hint(_hint, _now);
    end if;
    return coalesce(_found, '{}'::tid[]);
end
$$;
