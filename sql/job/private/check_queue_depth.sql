-- Purpose: refuse a batch of new jobs when a queue would pass its max_depth.
-- Invariant: counts at most max_depth index entries, and only for queues that have a
-- limit. A job whose key is held adds nothing, so that a producer that tries again gets
-- its job; nor does the slot of a schedule, which was promised. Concurrent callers may
-- pass it together by what they add at that moment.
-- Raises: JQ010.
create or replace function jobq_private.check_queue_depth(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
    _limit integer;
    _adding bigint;
    _depth bigint;
begin
    if not exists (select from jobq_private.queue as q where q.max_depth is not null) then
        return;
    end if;
    for _queue, _limit, _adding in
        select s.queue, s.max_depth, sum(d.jobs)
        from (
            select j.kind, j.queue, count(*) as jobs
            from unnest(check_queue_depth.jobs) as j
            where j.schedule_id is null
            and not exists (
                select from jobq_private.idempotency_key as k
                where k.kind = j.kind and k.idempotency_key = j.idempotency_key
            )
            and not exists (
                select from jobq_private.job as l
                where l.kind = j.kind and l.dedup_key = j.dedup_key and l.dedup is not null
            )
            group by j.kind, j.queue
        ) as d
        cross join lateral jobq_private.settings_for(d.kind, d.queue) as s
        where s.max_depth is not null
        group by s.queue, s.max_depth
    loop
        select count(*) into _depth
        from (
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id is null
            union all
            select from jobq_private.job as j
            where j.queue = _queue and j.state in ('queued', 'retrying')
            and j.lane_id between jobq_private.lane_floor(_queue)
                and jobq_private.lane_ceiling(_queue)
            limit _limit
        ) as present;
        if _depth + _adding > _limit then
            perform jobq_private.raise_error('QUEUE_FULL', format(
                'queue %s: max_depth %s, %s more asked for', _queue, _limit, _adding
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.check_queue_depth from public;

comment on function jobq_private.check_queue_depth is
'Refuses a batch of new jobs when a queue would pass its max_depth.';
