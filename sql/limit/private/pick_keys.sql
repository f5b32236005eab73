-- Purpose: the next open keys of a queue and priority in the session's turn; null where
-- there are none. If limits apply, null stands for each key whose limit another
-- transaction has locked.
-- Invariant: goes round once. Each session goes round by itself, from where it was; a
-- forgotten cursor, as behind a pooler, only begins a new round. Hot: its caller pins
-- the search path, and that no plan is made for a call.
create or replace function jobq_private.pick_keys(
    queue text, priority integer, max_keys integer, has_rules boolean
)
returns jobq_private.waiting_key[]
language plpgsql
as $$
declare
    _name constant text := 'jobq.key_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _keys jobq_private.waiting_key[];
    _locked uuid[];
begin
    select array_agg(k.key) into _keys
    from (
        (
            select distinct on (w.key_id) w as key
            from jobq_private.waiting_key as w
            where w.queue = pick_keys.queue and w.priority = pick_keys.priority
            and w.state = 'open' and w.key_id > _last
            order by w.key_id
            limit pick_keys.max_keys
        )
        union all
        (
            select distinct on (w.key_id) w
            from jobq_private.waiting_key as w
            where w.queue = pick_keys.queue and w.priority = pick_keys.priority
            and w.state = 'open' and w.key_id <= _last
            order by w.key_id
            limit pick_keys.max_keys
        )
        limit pick_keys.max_keys
    ) as k;
    if _keys is null then
        return null;
    end if;
    perform set_config(_name, (_keys[cardinality(_keys)]).key_id::text, false);
    if has_rules then
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
