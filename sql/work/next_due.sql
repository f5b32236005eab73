-- Purpose: when the next job of these queues becomes runnable, for an idle worker's sleep.
-- Invariant: one index probe for each queue, and for its priorities a scan that skips to those
-- with a job due earlier (before PostgreSQL 18 a probe for each); paused queues do not count. A
-- moment in the past means that there is work now. Where no lane has work anywhere, many queues
-- are not asked for theirs. Raises: 22004.
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
declare
    _skips constant boolean := current_setting('server_version_num')::integer >= 180000;
    _has_lanes boolean := true;
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif cardinality(next_due.queues) > 16 then
        _has_lanes := exists (select from jobq_private.lane as l)
            or exists (select from jobq_private.lane_call as c);
    end if;
    return (
        select case when m.due < 'infinity' then greatest(m.due, '0001-01-02 UTC') end
        from (
            select min(
                case when p.is_limited
                    then greatest(d.run_at, jobq_private.queue_opens_at(q.queue)) else d.run_at
                end
            ) as due
            from unnest(next_due.queues) as q (queue)
            left join lateral (
                select j.priority, j.run_at
                from jobq_private.job as j
                where j.queue = q.queue
                and j.state in ('queued', 'retrying')
                and j.lane_id is null
                and (next_due.except_kinds is null or j.kind <> all(next_due.except_kinds))
                order by j.priority desc, j.run_at
                limit 1
            ) as f on true
            left join lateral (
                with recursive head as (
                    select f.priority, f.run_at
                    where f.run_at is not null
                    union all
                    select h.priority, h.run_at
                    from head as l
                    cross join lateral (
                        select j.priority, j.run_at
                        from jobq_private.job as j
                        where j.queue = q.queue
                        and j.state in ('queued', 'retrying')
                        and j.lane_id is null
                        and j.priority < l.priority
                        and j.run_at < case when _skips then l.run_at else 'infinity' end
                        and (
                            next_due.except_kinds is null
                            or j.kind <> all(next_due.except_kinds)
                        )
                        order by j.priority desc, j.run_at
                        limit 1
                    ) as h
                )
                select min(h.run_at) as run_at from head as h
            ) as e on f.run_at > now()
            cross join lateral (
                select least(
                    f.run_at, e.run_at,
                    case when _has_lanes then jobq_private.next_lane(q.queue, next_due.except_kinds) end
                )
            ) as d (run_at)
            left join lateral (
                select
                    k.paused_at is not null as is_paused,
                    num_nonnulls(k.max_running, k.rate_limit) > 0 as is_limited
                from jobq_private.queue as k
                where k.queue = q.queue and d.run_at is not null
            ) as p on true
            where d.run_at is not null and p.is_paused is not true
        ) as m
    );
end
$$;

revoke all on function jobq.next_due from public;
grant execute on function jobq.next_due to jobq_worker, jobq_reader;

comment on function jobq.next_due is
'Returns when the next job of these queues becomes runnable, or null when none waits.';
