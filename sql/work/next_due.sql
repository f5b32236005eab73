-- Purpose: when the next job of these queues becomes runnable, for an idle worker's sleep.
-- Invariant: one index probe for each priority in use; paused queues do not count. A
-- moment in the past means that there is work now. Raises: 22004.
-- Argument except_kinds: kinds whose jobs do not count; null for none.
-- Returns: the instant; one in the past when there is work now, null when none waits.
-- Example: select jobq.next_due('{default}');
create or replace function jobq.next_due(queues text[], except_kinds text[] default null)
returns timestamptz
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    end if;
    return (
        with recursive head as (
            select q.queue, h.priority, h.run_at
            from unnest(next_due.queues) as q (queue)
            cross join lateral (
                select j.priority, j.run_at
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and (next_due.except_kinds is null or j.kind <> all(next_due.except_kinds))
                order by j.priority desc, j.run_at
                limit 1
            ) as h
            where not exists (
                select from jobq_private.queue as p
                where p.queue = q.queue and p.paused_at is not null
            )
            union all
            select l.queue, h.priority, h.run_at
            from head as l
            cross join lateral (
                select j.priority, j.run_at
                from jobq_private.job as j
                where j.queue = l.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and j.priority < l.priority
                and (next_due.except_kinds is null or j.kind <> all(next_due.except_kinds))
                order by j.priority desc, j.run_at
                limit 1
            ) as h
        )
        select case when m.due < 'infinity' then greatest(m.due, '0001-01-02 UTC') end
        from (
            select min(
                case when d.run_at is not null
                    then greatest(d.run_at, jobq_private.queue_opens_at(q.queue))
                end
            ) as due
            from unnest(next_due.queues) as q (queue)
            cross join lateral (
                select least(
                    (select min(h.run_at) from head as h where h.queue = q.queue),
                    jobq_private.next_lane(q.queue)
                )
            ) as d (run_at)
            where not exists (
                select from jobq_private.queue as p
                where p.queue = q.queue and p.paused_at is not null
            )
        ) as m
    );
end
$$;

revoke all on function jobq.next_due from public;
grant execute on function jobq.next_due to jobq_worker, jobq_reader;

comment on function jobq.next_due is
'Returns when the next job of these queues becomes runnable, or null when none waits.';
