-- Purpose: declare a queue, or replace what is declared of it; null means the default.
-- Invariant: one row, last writer wins; a pause is left as it is. Raises: 22004, 22023.
-- Example: select jobq.put_queue('mail', max_depth => 100000);
create or replace function jobq.put_queue(
    queue text,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    lease interval default null,
    retry_preset text default null,
    max_depth integer default null,
    key_max_running integer default null
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _violated text;
begin
    if put_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    end if;
    insert into jobq_private.queue as q (
        queue, priority, max_attempts, timeout, lease, retry_preset, max_depth,
        key_max_running
    )
    values (
        put_queue.queue, put_queue.priority, put_queue.max_attempts, put_queue.timeout,
        put_queue.lease, put_queue.retry_preset, put_queue.max_depth,
        put_queue.key_max_running
    )
    on conflict on constraint queue_pkey do update
    set
        priority = excluded.priority, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, lease = excluded.lease,
        retry_preset = excluded.retry_preset, max_depth = excluded.max_depth,
        key_max_running = excluded.key_max_running, updated_at = now();
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.queue', _violated);
end
$$;

revoke all on function jobq.put_queue from public;
grant execute on function jobq.put_queue to jobq_operator;

comment on function jobq.put_queue is
'Declares a queue: what holds for its jobs in place of the global defaults.';
