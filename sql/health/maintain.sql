-- Purpose: everything that must happen from time to time: recover, tick, prune,
-- partitions.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row; bounded in rows, and in what it waits for.
-- Raises: JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, ticked, pruned_keys, made_partitions or dropped_partitions.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _made bigint;
    _dropped bigint;
begin
    if not pg_try_advisory_xact_lock(1785684595, 0) then
        return;
    end if;
    return query select 'recovered', count(*) from jobq.recover(1000);
    return query select 'ticked', count(*) from jobq.tick(1000);
    return query select 'pruned_keys', jobq_private.prune(1000);
    return query select 'pruned_workflows', jobq_private.prune_workflows(1000);
    select p.made, p.dropped into _made, _dropped
    from jobq_private.maintain_partitions() as p;
    return query values ('made_partitions', _made), ('dropped_partitions', _dropped);
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, fires schedules that are due, prunes keys, workers, steps and events, makes and drops partitions; safe for any number of callers.';
