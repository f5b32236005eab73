-- Purpose: Returns the time until maintain() has urgent work, or null if there is none.
-- Invariant: a duration by the database's clock; reads one entry of each index. Leases that begin
-- later and daily tasks do not count, so call maintain() from time to time as well.
-- Raises: nothing.
-- Returns: zero or less if something is due, null if nothing is planned.
-- Example: select jobq.maintain_in();
create or replace function jobq.maintain_in()
returns interval language plpgsql security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off as $$
declare
    _due timestamptz := least(
        (select min(j.lease_expires_at) from jobq_private.job as j where j.state = 'running'),
        (
            select min(j.expires_at)
            from jobq_private.job as j
            where j.expires_at is not null and j.state in ('queued', 'retrying', 'blocked')
        )
    );
    _task_due timestamptz;
    _function text;
begin
    for _function in
        select t.due from jobq_private.maintenance_task as t where t.due is not null
    loop
        execute format('select jobq_private.%I()', _function) into _task_due;
        _due := least(_due, _task_due);
    end loop;
    -- Before PostgreSQL 17 no interval is infinite.
    return greatest(_due, case when _due is not null then '0001-01-02 UTC'::timestamptz end)
        - clock_timestamp();
end
$$;
grant execute on function jobq.maintain_in to jobq_worker, jobq_operator, jobq_reader;
