-- Purpose: Sets how many jobs of one concurrency key may run at once in a queue, and how many may
-- start per period. Replaces both. Without either, the queue's limits for each key apply again.
-- Invariant: applies to the next start, and running jobs continue. Raises: 22004, 22023, 42501.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: maximum number of its jobs that run at once in the queue, 1 to
-- 32767; null means the queue's key_max_running.
-- Argument rate_limit: how many of its jobs start in each rate_period, 1 to 1000000000;
-- null means the queue's key_rate_limit, with its period and burst.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer default null,
    rate_limit integer default null, rate_period interval default null,
    rate_burst integer default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _violated text;
begin
    perform jobq_private.check_given('queue and concurrency_key', num_nulls(
        put_limit.queue, put_limit.concurrency_key
    ));
    perform jobq_private.check_worked('{}', put_limit.queue);
    insert into jobq_private.key_limit as l (
        queue, concurrency_key, max_running, rate_limit, rate_period, rate_burst
    )
    values (
        put_limit.queue, put_limit.concurrency_key, put_limit.max_running,
        put_limit.rate_limit, put_limit.rate_period, put_limit.rate_burst
    )
    on conflict on constraint key_limit_pkey do update
    set
        max_running = excluded.max_running, rate_limit = excluded.rate_limit,
        rate_period = excluded.rate_period, rate_burst = excluded.rate_burst,
        updated_at = now();
    delete from jobq_private.key_limit as l
    where l.queue = put_limit.queue and l.concurrency_key = put_limit.concurrency_key
    and num_nonnulls(l.max_running, l.rate_limit, l.budget) = 0;
    perform jobq_private.record_audit(
        'put_limit', put_limit.queue || ' ' || put_limit.concurrency_key,
        coalesce(nullif(concat_ws(', ',
            'max_running ' || put_limit.max_running,
            'rate_limit ' || put_limit.rate_limit || ' in '
            || coalesce(put_limit.rate_period, '1 s')
        ), ''), 'none')
    );
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
end
$$;
grant execute on function jobq.put_limit to jobq_operator;
