-- Purpose: how many jobs of a kind's key run in other lanes than that of this queue: in other queues, or
-- started before the kind had a limit for each key.
-- Invariant: exact for who holds the limit of the key. Looks into two lanes of each queue in which something
-- has a place. Hot: its callers pin the search path, and that no plan is made for a call.
-- Raises: nothing.
create or replace function jobq_private.running_elsewhere(
    queue text, concurrency_key text, kind text
)
returns integer
language plpgsql
stable
strict
parallel safe
as $$
declare
    _lane_id constant uuid := jobq_private.kind_lane_id(queue, kind, concurrency_key);
    _running integer;
begin
    with recursive active as (
        (
            select j.queue from jobq_private.job as j
            where j.place is not null
            order by j.queue
            limit 1
        )
        union all
        select n.queue
        from active as a
        cross join lateral (
            select j.queue from jobq_private.job as j
            where j.place is not null and j.queue > a.queue
            order by j.queue
            limit 1
        ) as n
    )
    select count(*) into _running
    from active as a
    cross join lateral (
        values
        (jobq_private.lane_id(a.queue, running_elsewhere.concurrency_key)),
        (jobq_private.kind_lane_id(
            a.queue, running_elsewhere.kind, running_elsewhere.concurrency_key
        ))
    ) as l (lane_id)
    join jobq_private.job as j
        on j.queue = a.queue and j.lane_id = l.lane_id and j.place is not null
    where j.kind = running_elsewhere.kind and l.lane_id <> _lane_id;
    if exists (select from jobq_private.known_limit as g where g.limit_id is null) then
        _running := _running + (
            select count(*) from jobq_private.uncounted() as u
            where u.kind = running_elsewhere.kind
            and u.concurrency_key = running_elsewhere.concurrency_key
            and u.lane_id <> _lane_id
        );
    end if;
    return _running;
end
$$;
