-- Purpose: open the lanes of a queue that were called for.
-- Invariant: bounded; SKIP LOCKED. A call is used up only while nobody closes its lane, by the
-- lock of call_lane(), and under the locks of all rows of the lane; a lane that has none is made
-- under a lock that whoever starts a job by hand holds too. Else the call stays for the next
-- claim. Lanes are looked up by themselves, however many there are. Raises: nothing.
create or replace function jobq_private.open_called_lanes(queue text)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _making constant integer := jobq_private.lock_class('laning');
    _calls jobq_private.lane_call[];
    _free bigint[];
    _lanes uuid[];
    _new uuid[];
    _made uuid[];
begin
    _calls := array(
        select c
        from jobq_private.lane_call as c
        where c.queue = open_called_lanes.queue
        limit 500
        for update skip locked
    );
    if _calls = '{}' then
        return;
    end if;
    _free := array(
        select c.call_id
        from unnest(_calls) as c
        where pg_try_advisory_xact_lock_shared(
            _closing, jobq_private.closing_slot(c.lane_id, c.concurrency_key)
        )
    );
    _lanes := jobq_private.lock_lanes(array(
        select c.lane_id from unnest(_calls) as c where c.call_id in (select unnest(_free))
    ));
    _new := array(
        select u.lane_id
        from unnest(_lanes) as u (lane_id)
        where not exists (
            select from jobq_private.lane as l where l.lane_id = u.lane_id offset 0
        )
    );
    if _new <> '{}' then
        _made := array(
            select u.lane_id
            from unnest(_new) as u (lane_id)
            where pg_try_advisory_xact_lock(_making, jobq_private.lane_slot(u.lane_id))
        );
        _lanes := array(
            select u.lane_id
            from unnest(_lanes) as u (lane_id)
            where u.lane_id not in (select unnest(_new))
            or u.lane_id in (select unnest(_made))
            and not exists (
                select from jobq_private.lane as l where l.lane_id = u.lane_id offset 0
            )
        );
    end if;
    _calls := array(
        select c
        from unnest(_calls) as c
        where c.call_id in (select unnest(_free)) and c.lane_id in (select unnest(_lanes))
    );
    delete from jobq_private.lane_call as d
    where d.queue = open_called_lanes.queue
    and d.call_id = any (array(select c.call_id from unnest(_calls) as c));

    insert into jobq_private.lane as l (lane_id, priority, queue, concurrency_key, kind)
    select distinct c.lane_id, c.priority, c.queue, c.concurrency_key, c.kind
    from unnest(_calls) as c
    where c.priority is not null
    order by c.lane_id, c.priority
    on conflict on constraint lane_pkey do update
    set state = 'open', open_at = '-infinity', limit_id = null
    where l.state <> 'open';

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', limit_id = null
    where l.lane_id = any (array(select c.lane_id from unnest(_calls) as c))
    and (
        l.state = 'full'
        or l.state = 'later' and l.lane_id = any (array(
            select c.lane_id from unnest(_calls) as c where c.priority is null
        ))
    );
end
$$;
