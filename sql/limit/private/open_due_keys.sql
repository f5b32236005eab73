-- Purpose: open the keys of a queue that are due. Of those that wait for the limit of a kind,
-- open as many of the highest priority as the limit allows to start, from the last key on that
-- the session has claimed from.
-- Invariant: bounded; skips locked rows. Callers pin the planner's settings.
create or replace function jobq_private.open_due_keys(queue text, now timestamptz, last_key uuid)
returns void language plpgsql as $$
declare
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _rows tid[];
begin
    _rows := array(
        select w.ctid
        from jobq_private.waiting_key as w
        where w.queue = open_due_keys.queue
        and w.state <> 'full'
        and w.open_at > '-infinity'
        and w.open_at <= open_due_keys.now
        order by w.open_at
        limit 200
        for update skip locked
    ) || array(
        select w.ctid
        from jobq_private.awaited_limits(open_due_keys.queue, open_due_keys.now) as a
        cross join lateral (
            select max(p.priority) as priority
            from jobq_private.waiting_key as p
            where p.queue = open_due_keys.queue and p.full_kind = a.kind
        ) as p
        cross join lateral (
            select o.ctid
            from (values (last_key, _top), (_bottom, last_key)) as t (low, high)
            cross join lateral (
                select o.ctid
                from jobq_private.waiting_key as o
                where o.queue = open_due_keys.queue and o.full_kind = a.kind
                and o.priority = p.priority and o.key_id > t.low and o.key_id <= t.high
                order by o.key_id
                limit least(greatest(a.max_starts, 1), 100)
                for update skip locked
            ) as o
            limit least(greatest(a.max_starts, 1), 100)
        ) as w
        where coalesce(a.max_starts, 1) > 0
    );
    if _rows <> '{}' then
        update jobq_private.waiting_key as w
        set state = 'open', open_at = '-infinity', full_kind = null
        where w.ctid = any(_rows);
    end if;
end
$$;
