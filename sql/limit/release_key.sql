-- Purpose: let the jobs of a held concurrency key start again.
-- Invariant: at once; what the key's limits say goes on to hold. Raises: 22004.
-- Returns: whether the key was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(queue text, concurrency_key text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _limit_id constant uuid := jobq_private.limit_id(queue, null, concurrency_key);
begin
    if num_nulls(release_key.queue, release_key.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    update jobq_private.limit_state as g
    set held_until = '-infinity', hold_reason = null, dead_job_id = null
    where g.limit_id = _limit_id and g.held_until > clock_timestamp();
    if not found then
        return false;
    end if;
    -- open ones, too: a claim may close them before this commits
    perform jobq_private.open_again(array(
        select w
        from jobq_private.waiting_key as w
        where w.queue = release_key.queue and w.concurrency_key = release_key.concurrency_key
    ));
    perform jobq_private.wake(array[release_key.queue]);
    perform jobq_private.record_audit(
        'release_key', release_key.queue || ' ' || release_key.concurrency_key, null
    );
    return true;
end
$$;

grant execute on function jobq.release_key to jobq_operator;

comment on function jobq.release_key is
'Lets the jobs of a held concurrency key start again, and says whether it was held.';
