-- Purpose: whether a job can be stored, claimed and finished, by a trial that is undone.
-- Invariant: leaves only dead rows. Its payload is larger than a table's free space is likely to
-- be, so it detects a full disk. Raises: nothing. Never: DEDUP_CONFLICT, JOB_IS_RECURRING,
-- QUEUE_FULL, BATCH_ENDED, NULL_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, INVALID_ARGUMENT,
-- BATCH_NOT_FOUND, JOB_NOT_FOUND, LEASE_LOST, PAYLOAD_INVALID, since all are caught.
create or replace function jobq_private.trial_health()
returns setof jobq_private.finding language plpgsql as $$
declare
    _queue constant text := 'jobq.health';
    _problem text;
    _job_id uuid;
begin
    if pg_is_in_recovery() then
        return;
    end if;
    -- An undone transaction must not wait for a standby, which might never confirm it.
    perform set_config('synchronous_commit', 'local', true)
    where current_setting('synchronous_commit') <> 'off';
    begin
        _job_id := jobq.enqueue(_queue, jsonb_build_object('noise', array(
            select md5(random()::text) from generate_series(1, 1000)
        )), _queue);
        perform jobq.complete(c.job_id, c.attempt)
        from jobq.claim(array[_queue], _queue) as c
        where c.job_id = _job_id;
        raise exception using
            errcode = case when found then 'JQ999' else 'P0001' end,
            message = 'the claim returned no job';
    exception
    when lock_not_available then
        raise;  -- part_health() names the session
    when others then
        -- While grants by queue are enforced, this login may not hold the queue.
        _problem := case
            when sqlstate <> 'JQ999' and not (sqlstate = '42501' and (
                select c.relrowsecurity from pg_class as c
                where c.oid = 'jobq_private.job'::regclass
            ))
            then format('%s (%s)', sqlerrm, sqlstate)
        end;
    end;
    return query select 'trial', _problem is null,
        coalesce('a trial job failed: ' || _problem, 'a trial job can be stored, claimed and finished'),
        case
            when _problem like '%(53100)' then 'free disk space, or enlarge the disk'
            when _problem like '%(25006)' then
                'allow writes: alter database … reset default_transaction_read_only'
            else 'fix the cause of the error; jobq deploy repairs functions, constraints and grants'
        end;
end
$$;
