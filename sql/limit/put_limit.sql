-- Purpose: say how many jobs of one key may run at once in a queue, in place of what the
-- queue says for each key.
-- Invariant: one row, last writer wins; holds at once for what starts, and leaves what runs.
-- Raises: 22004, 22023.
-- Argument concurrency_key: the key, of 1 to 1024 bytes.
-- Argument max_running: at most so many of its jobs run at once in the queue, 1 to 32767.
-- Returns: nothing.
-- Example: select jobq.put_limit('mail', 'customer-7', 3);
create or replace function jobq.put_limit(
    queue text, concurrency_key text, max_running integer
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
    if num_nulls(put_limit.queue, put_limit.concurrency_key, put_limit.max_running) > 0 then
        perform jobq_private.raise_error(
            'NULL_ARGUMENT', 'queue, concurrency_key and max_running'
        );
    end if;
    insert into jobq_private.key_limit as l (queue, concurrency_key, max_running)
    values (put_limit.queue, put_limit.concurrency_key, put_limit.max_running)
    on conflict on constraint key_limit_pkey do update
    set max_running = excluded.max_running, updated_at = now();
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting('jobq_private.key_limit', _violated);
end
$$;

revoke all on function jobq.put_limit from public;
grant execute on function jobq.put_limit to jobq_operator;

comment on function jobq.put_limit is
'Says how many jobs of one concurrency key may run at once in a queue.';
