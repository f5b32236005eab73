-- Purpose: Deletes the limits of one key, which then has those that its queue sets for
-- each key.
-- Invariant: applies to the next start. Raises: 22004, JQ007.
-- Returns: nothing.
-- Example: select jobq.delete_limit('mail', 'customer-42');
create or replace function jobq.delete_limit(queue text, concurrency_key text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(delete_limit.queue, delete_limit.concurrency_key) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue and concurrency_key');
    end if;
    -- put_budget() removes its budget.
    update jobq_private.key_limit as l
    set max_running = null, rate_limit = null, rate_period = null, rate_burst = null
    where l.queue = delete_limit.queue
    and l.concurrency_key = delete_limit.concurrency_key
    and l.budget is not null and num_nonnulls(l.max_running, l.rate_limit) > 0;
    if not found then
        delete from jobq_private.key_limit as l
        where l.queue = delete_limit.queue
        and l.concurrency_key = delete_limit.concurrency_key and l.budget is null;
    end if;
    if not found then
        perform jobq_private.raise_error('LIMIT_NOT_FOUND', format(
            'queue %s, concurrency_key %s', delete_limit.queue, delete_limit.concurrency_key
        ));
    end if;
    perform jobq_private.record_audit(
        'delete_limit', delete_limit.queue || ' ' || delete_limit.concurrency_key
    );
end
$$;

grant execute on function jobq.delete_limit to jobq_operator;
