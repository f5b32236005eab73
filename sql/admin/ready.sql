-- Purpose: Returns whether jobs can be enqueued (queue) and read (repo): ok, or error(reason).
-- Invariant: uses what the two need; a read-only server has no queue. Raises: nothing.
-- Returns: one row.
-- Column queue: ok, or error(reason).
-- Column repo: ok, or error(reason).
-- Example: select * from jobq_internal.ready();
create or replace function jobq_internal.ready()
returns table (queue text, repo text) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform from jobq_private.job limit 1;
    perform from jobq_private.setting;
    return query select
        case
            when pg_is_in_recovery() or current_setting('transaction_read_only')::boolean
            then 'error(read_only)'
            else 'ok'
        end,
        'ok';
end
$$;
grant execute on function jobq_internal.ready
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
