-- Purpose: the next open keys of a queue and priority in the session's turn; null if
-- there are none. If limits apply, each key whose limit another transaction has locked
-- is replaced by null.
-- Invariant: each session has its own cursor; without it, a new round begins. Callers
-- pin the planner's settings.
create or replace function jobq_private.pick_keys(
    queue text, priority integer, max_keys integer, has_limits boolean
)
returns jobq_private.waiting_key[]
language plpgsql
as $$
declare
    _name constant text := 'jobq.key_' || (hashtext(queue) & 1023);
    _last constant uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _keys jobq_private.waiting_key[];
    _locked uuid[];
begin
    _keys := array(
        select k.key
        from (values (_last, _top), (_bottom, _last)) as t (low, high)
        cross join lateral (
            select distinct on (w.key_id) w as key
            from jobq_private.waiting_key as w
            where w.queue = pick_keys.queue and w.priority = pick_keys.priority
            and w.state = 'open' and w.key_id > t.low and w.key_id <= t.high
            order by w.key_id
            limit pick_keys.max_keys
        ) as k
        limit pick_keys.max_keys
    );
    if _keys = '{}' then
        return null;
    end if;
    perform set_config(_name, (_keys[cardinality(_keys)]).key_id::text, false);
    if has_limits then
        _locked := jobq_private.lock_limits(array(
            select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
            from unnest(_keys) as k
        ), false);
        _keys := array(
            select case when k.key_id = any(_locked) then _keys[k.ordinality] end
            from unnest(_keys) with ordinality as k
            order by k.ordinality
        );
    end if;
    return _keys;
end
$$;
