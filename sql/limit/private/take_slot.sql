-- Purpose: take a slot for a job that is started by its id or by raw SQL, and charge
-- its cost; null if no limit applies.
-- Invariant: waits for the locks of all its limits, then checks them. Raises: JQ011.
create or replace function jobq_private.take_slot(
    job jobq_private.job, out slot smallint, out started_at timestamptz
)
language plpgsql set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
as $$
declare
    _scopes constant jobq_private.scope[] := array(select l from jobq_private.job_limits(job) as l);
    _reached text;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from jobq_private.limit_change as c where c.change_id = 1 for share skip locked;
    end if;
    if _scopes = '{}' then
        return;
    end if;
    perform jobq_private.lock_limits(_scopes, true);
    _reached := (
        select b.explanation from jobq_private.blocking_limits(job, clock_timestamp()) as b limit 1
    );
    if _reached is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _reached);
    end if;
    -- the first that no job of its key has; 1 without a key
    slot := (
        select s.n
        from (select generate_series(1, 32767) as n) as s
        where s.n <> all(array(
            select j.slot from jobq_private.job as j
            where j.queue = job.queue and j.key_id = job.key_id and j.slot is not null
        ))
        limit 1
    );
    -- read between: no end of what made room is later, and what is charged counts from no earlier
    started_at := clock_timestamp();
    perform jobq_private.charge(
        array[job.job_id], true, array(select s.limit_id from unnest(_scopes) as s)
    );
end
$$;
