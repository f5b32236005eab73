-- Purpose: one task of maintain(), repeated while it comes back full.
-- Invariant: 1,000 rows at a time, or what resolve() does in its time; the last time begins within
-- the time given. Partitions are made once, and more of them by the next call, after a commit. What
-- somebody has locked holds up nothing else for longer than a second.
-- Raises: 55P03. Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.upkeep(
    task text, at_most interval, out affected bigint, out has_more boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
    _until constant timestamptz := clock_timestamp() + at_most;
    _done bigint;
begin
    affected := 0;
    loop
        _done := case task
            when 'recovered' then (select count(*) from jobq.recover(1000))
            when 'resolved' then jobq_private.resolve(1000)
            when 'ticked' then (select count(*) from jobq.tick(1000))
            when 'expired' then jobq_private.expire_jobs(1000)
            when 'pruned_jobs' then jobq_private.prune_jobs(1000)
            when 'pruned_keys' then jobq_private.prune(1000)
            when 'pruned_workflows' then jobq_private.prune_workflows(1000)
            when 'rolled_up' then jobq_private.roll_up()
            when 'made_partitions' then jobq_private.make_partitions()
            when 'dropped_partitions' then jobq_private.drop_partitions()
            when 'renewed_settings' then coalesce((
                select jobq_private.write_constants()
                where exists (
                    select from jobq_private.constants() as c where not c.is_right
                )
            ), 0)
        end;
        affected := affected + _done;
        has_more := _done >= case
            when task in ('made_partitions', 'resolved') then 1
            when task = 'dropped_partitions' then 10
            else 1000
        end;
        exit when not has_more or task in ('made_partitions', 'dropped_partitions')
            or clock_timestamp() > _until;
    end loop;
end
$$;

revoke all on function jobq_private.upkeep from public;

comment on function jobq_private.upkeep is
'Does one task of maintain(), again while it comes back full.';
