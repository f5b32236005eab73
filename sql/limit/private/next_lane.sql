-- Purpose: when the next lane of a queue may have work; -infinity where one may have it now, which
-- a claim will find, or has passed over because another held its limits.
-- Invariant: two index probes, and one more for each limit of a kind that lanes wait for. With kinds
-- that do not count, a probe for each lane at whose head one of them waits. Raises: nothing.
create or replace function jobq_private.next_lane(queue text, except_kinds text[])
returns timestamptz
language plpgsql
stable
parallel safe
set plan_cache_mode = force_generic_plan
as $$
begin
    if exists (select from jobq_private.lane_call as c where c.queue = next_lane.queue) then
        return '-infinity'::timestamptz;
    end if;
    return least(
        (
            select case when l.open_at > clock_timestamp() then l.open_at else '-infinity' end
            from jobq_private.lane as l
            where l.queue = next_lane.queue and l.state <> 'full'
            and (
                next_lane.except_kinds is null
                or (
                    select j.kind
                    from jobq_private.job as j
                    where j.lane_id = l.lane_id
                    and j.priority = l.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) <> all (next_lane.except_kinds)
            )
            order by l.open_at
            limit 1
        ),
        (
            select min(case
                when coalesce(a.room, 1) > 0 then '-infinity' else a.open_at
            end)
            from jobq_private.awaited_limits(next_lane.queue, clock_timestamp()) as a
        )
    );
end
$$;
