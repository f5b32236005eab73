-- Purpose: Starts no job of one concurrency key of a queue until a time.
-- Invariant: running jobs continue; a longer hold stays. Raises: 22004, 22023.
-- Argument until: the time, or infinity until release_key() is called.
-- Argument reason: why, for explain(); 512 characters at most are kept.
-- Returns: nothing.
-- Example: select jobq.hold_key('mail', 'customer-7', now() + interval '1 min', 'asked to wait');
create or replace function jobq.hold_key(
    queue text, concurrency_key text, until timestamptz, reason text default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('queue, concurrency_key and until', num_nulls(
        hold_key.queue, hold_key.concurrency_key, hold_key.until
    ));
    perform jobq_private.check_argument(case
        when length(hold_key.queue) not between 1 and 128 or right(hold_key.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        when octet_length(hold_key.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when hold_key.until not between '0001-01-02 UTC' and '9999-12-30 UTC'
            and hold_key.until <> 'infinity'
        then 'until must be before the year 10000, or infinity'
    end);
    perform jobq_private.store_hold(
        hold_key.queue, null, hold_key.concurrency_key, hold_key.until, hold_key.reason
    );
    perform jobq_private.record_audit(
        'hold_key', hold_key.queue || ' ' || hold_key.concurrency_key, hold_key.reason
    );
end
$$;
grant execute on function jobq.hold_key to jobq_operator;
