-- Purpose: let the jobs of a held concurrency key start again.
-- Invariant: at once; what the key's limits say goes on to hold. Raises: 22004.
-- Returns: whether the key was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(queue text, concurrency_key text)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane_id constant uuid := jobq_private.lane_id(queue, concurrency_key);
begin
    if num_nulls(release_key.queue, release_key.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    perform from jobq_private.lane as l
    where l.lane_id = _lane_id
    order by l.priority
    for update;
    update jobq_private.gate as g
    set held_until = '-infinity', hold_reason = null
    where g.gate_id = _lane_id and g.held_until > clock_timestamp();
    if not found then
        return false;
    end if;
    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.lane_id = _lane_id and l.state <> 'open';
    perform jobq_private.wake(array[release_key.queue]);
    perform jobq_private.record_audit(
        'release_key', release_key.queue || ' ' || release_key.concurrency_key, null
    );
    return true;
end
$$;

revoke all on function jobq.release_key from public;
grant execute on function jobq.release_key to jobq_operator;

comment on function jobq.release_key is
'Lets the jobs of a held concurrency key start again, and says whether it was held.';
