-- Purpose: open the lanes of a queue that were called for, those whose time has come, and as many
-- as the limits of their kinds let pass.
-- Invariant: bounded; SKIP LOCKED, and under the locks of all rows of the lane, so that who has
-- made an open row sees who claims from another. Hot: its caller pins the search path, and that no
-- plan is made for a call. Raises: nothing.
create or replace function jobq_private.open_lanes(
    queue text, now timestamptz, has_kind_limits boolean
)
returns void
language plpgsql
as $$
declare
    _due jobq_private.lane[];
begin
    perform jobq_private.open_called_lanes(queue);
    _due := array(
        select t
        from jobq_private.lane as t
        where t.queue = open_lanes.queue
        and t.state <> 'full'
        and t.open_at > '-infinity'
        and t.open_at <= open_lanes.now
        order by t.open_at
        limit 200
        for update skip locked
    );
    if has_kind_limits then
        _due := _due || jobq_private.limited_lanes(queue, open_lanes.now);
    end if;
    if _due <> '{}' then
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity', limit_id = null
        from unnest(_due) as d
        where l.lane_id = d.lane_id and l.priority = d.priority
        and l.lane_id in (
            select unnest(jobq_private.lock_lanes(array(select w.lane_id from unnest(_due) as w)))
        );
    end if;
end
$$;
