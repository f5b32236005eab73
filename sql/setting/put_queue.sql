-- Purpose: Declares a queue: settings of its jobs that replace the global defaults.
-- Invariant: replaces the whole declaration: null means the default. A pause and budgets stay.
-- Raises: 22004, 22023, 42501.
-- Example: select jobq.put_queue('mail', max_depth => 100000);
create or replace function jobq.put_queue(
    queue text, priority integer default null, max_attempts integer default null,
    timeout interval default null, lease interval default null, retry_preset text default null,
    max_depth integer default null, key_max_running integer default null,
    max_running integer default null, rate_limit integer default null,
    rate_period interval default null, rate_burst integer default null,
    key_rate_limit integer default null, key_rate_period interval default null,
    key_rate_burst integer default null, ordered boolean default null, on_dead text default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _before constant jsonb := (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    );
    _violated text;
begin
    perform jobq_private.check_given('queue', num_nulls(put_queue.queue));
    insert into jobq_private.queue as q (queue)
    values (put_queue.queue)
    on conflict on constraint queue_pkey do nothing;
    update jobq_private.queue as q
    set
        priority = put_queue.priority, max_attempts = put_queue.max_attempts,
        timeout = put_queue.timeout, lease = put_queue.lease,
        retry_preset = put_queue.retry_preset, max_depth = put_queue.max_depth,
        max_running = put_queue.max_running, rate_limit = put_queue.rate_limit,
        rate_period = put_queue.rate_period, rate_burst = put_queue.rate_burst,
        key_max_running = put_queue.key_max_running,
        key_rate_limit = put_queue.key_rate_limit,
        key_rate_period = put_queue.key_rate_period,
        key_rate_burst = put_queue.key_rate_burst, ordered = put_queue.ordered,
        on_dead = put_queue.on_dead,
        updated_at = now()
    where q.queue = put_queue.queue;
    perform jobq_private.audit_settings('put_queue', put_queue.queue, _before, (
        select to_jsonb(q) - 'queue' from jobq_private.queue as q where q.queue = put_queue.queue
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
    when insufficient_privilege then
        perform jobq_private.raise_error('QUEUE_DENIED', 'queue ' || put_queue.queue);
end
$$;
grant execute on function jobq.put_queue to jobq_operator;
