-- Purpose: Returns the maximum lag of a standby, and null on a primary.
-- Invariant: reads only. Zero if everything received is replayed and the primary is connected;
-- otherwise the time since the last replayed commit. Raises: nothing.
-- Returns: the lag; null on a primary.
-- Example: select jobq_internal.replica_lag();
create or replace function jobq_internal.replica_lag()
returns interval language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select case
        when not pg_is_in_recovery() then null
        when exists (select from pg_stat_wal_receiver as w where w.pid is not null)
        and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
        then interval '0'
        else greatest(clock_timestamp() - pg_last_xact_replay_timestamp(), interval '0')
    end
$$;
grant execute on function jobq_internal.replica_lag to jobq_operator, jobq_reader;
