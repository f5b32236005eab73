-- Purpose: lock the jobs of a queue that a claim takes next, by priority, then due_at; return
-- where they are. kinds, except_kinds and a priority narrow it down.
-- Invariant: SKIP LOCKED. A scan begins where the last one of this session ended. If it finds
-- nothing there, and twice a second for what was committed late or came back, it begins at the
-- front. Callers pin the planner's settings.
create or replace function jobq_private.find_jobs(
    queue text, max_jobs integer, except_kinds text[] default null, kinds text[] default null,
    priority integer default null
)
returns tid[]
language plpgsql
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _hint jobq_private.claim_hint := jobq_private.read_hint(find_jobs.queue, _now);
    _is_wide boolean := _hint.priorities is null or _now >= _hint.refresh_at
        or find_jobs.kinds is not null;
    _found tid[];
    _priorities smallint[];
    _due_ats timestamptz[];
    _job_ids uuid[];
    _last integer;
begin
    if _hint.priorities = '{}' then
        return '{}'::tid[];
    elsif _hint.priorities is null and find_jobs.priority is null then
        _hint := jobq_private.keep_hint(_hint, _now);
        return jobq_private.find_jobs_from_head(queue, max_jobs, except_kinds, kinds);
    end if;
    for _pass in 1 .. 2 loop
        -- One range of the index for each priority; the loop over them stops at max_jobs.
        select array_agg(f.ctid), array_agg(f.priority), array_agg(f.due_at), array_agg(f.job_id)
        into _found, _priorities, _due_ats, _job_ids
        from (
            select f.*
            from unnest(
                coalesce(_hint.priorities, array[find_jobs.priority::smallint]), coalesce(_hint.fronts, '{-infinity}')
            ) as p (priority, front)
            cross join lateral (
                select j.ctid, j.priority, j.due_at, j.job_id
                from jobq_private.job as j
                where j.queue = find_jobs.queue and j.priority = p.priority
                and j.state in ('queued', 'retrying')
                and (j.due_at, j.job_id) >= (
                    case when not _is_wide and p.priority = _hint.priority then _hint.due_at else p.front end,
                    case when not _is_wide and p.priority = _hint.priority then _hint.job_id
                        else '00000000-0000-0000-0000-000000000000' end
                )
                and j.due_at <= _now
                and (find_jobs.except_kinds is null or j.kind <> all(find_jobs.except_kinds))
                and (find_jobs.kinds is null or j.kind = any(find_jobs.kinds))
                -- A row that others have claimed since this snapshot would be locked, found to run,
                -- and kept from its worker until the commit. So the first pass leaves what another
                -- transaction has touched that had not ended.
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
        _is_wide := true;
    end loop;
    if _found is not null and find_jobs.kinds is null then
        _last := cardinality(_found);
        _hint.priority := _priorities[_last];
        _hint.due_at := _due_ats[_last];
        _hint.job_id := _job_ids[_last];
        _hint.written_at := null;
    end if;
    if _hint.written_at is null or _now >= _hint.refresh_at then
        _hint := jobq_private.keep_hint(_hint, _now);
    end if;
    return coalesce(_found, '{}'::tid[]);
end
$$;
