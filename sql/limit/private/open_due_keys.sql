-- Purpose: open the keys of a queue that are due. Of those that wait for the limit of a
-- kind, open as many of the highest priority as the limit allows to start, in the
-- session's turn.
-- Invariant: bounded; skips locked rows. Callers pin the planner's settings.
create or replace function jobq_private.open_due_keys(queue text, now timestamptz)
returns void
language plpgsql
as $$
declare
    -- the cursor of pick_keys(), which then meets these keys next
    _last constant uuid := coalesce(
        nullif(current_setting('jobq.key_' || (hashtext(queue) & 1023), true), '')::uuid,
        gen_random_uuid()
    );
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _rows tid[];
    _limit record;
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
    );
    for _limit in
        select
            a.limit_id, least(greatest(a.max_starts, 1), 100) as max_keys, (
                select max(w.priority)
                from jobq_private.waiting_key as w
                where w.queue = open_due_keys.queue and w.limit_id = a.limit_id
            ) as priority
        from jobq_private.awaited_limits(open_due_keys.queue, open_due_keys.now) as a
        where coalesce(a.max_starts, 1) > 0
    loop
        _rows := _rows || array(
            select w.ctid
            from jobq_private.waiting_key as w
            where w.key_id in (
                select o.key_id
                from (values (_last, _top), (_bottom, _last)) as t (low, high)
                cross join lateral (
                    select o.key_id
                    from jobq_private.waiting_key as o
                    where o.queue = open_due_keys.queue and o.limit_id = _limit.limit_id
                    and o.priority = _limit.priority and o.key_id > t.low and o.key_id <= t.high
                    order by o.key_id
                    limit _limit.max_keys
                ) as o
                limit _limit.max_keys
            )
            and w.queue = open_due_keys.queue and w.limit_id = _limit.limit_id
            and w.priority = _limit.priority
            for update skip locked
        );
    end loop;
    if _rows <> '{}' then
        update jobq_private.waiting_key as w
        set state = 'open', open_at = '-infinity', limit_id = null
        where w.ctid = any(_rows);
    end if;
end
$$;
