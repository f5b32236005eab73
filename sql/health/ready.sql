-- Purpose: whether jobs can be taken in here (queue) and looked up (repo).
-- Invariant: touches what the two need; a server that only reads has no queue.
-- Raises: nothing.
-- Returns: one row.
-- Column queue: ok, or error(reason).
-- Column repo: ok, or error(reason).
-- Example: select * from jobq.ready();
create or replace function jobq.ready()
returns table (queue text, repo text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
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

revoke all on function jobq.ready from public;
grant execute on function jobq.ready
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.ready is
'Says whether jobs can be taken in (queue) and looked up (repo): ok, or error(reason).';
