-- Purpose: queue the on_first_death job of a batch, and the jobs at its end.
-- Invariant: ends a batch under the lock of its row, which join_batches() shares, so no member is
-- being added. Returns whether nothing remains to be done until another member ends.
create or replace function jobq_private.settle_batch(batch_id uuid)
returns boolean language plpgsql as $$
declare
    _batch jobq_private.batch;
    _is_settled boolean := true;
    _is_over boolean;
    _has_dead boolean;
    _has_failed boolean;
begin
    -- Two transactions that end the last members do not see each other's changes. Only
    -- the holder of this lock may delete the row of pending; the lock does not block
    -- join_batches().
    select b.* into _batch
    from jobq_private.batch as b
    where b.batch_id = settle_batch.batch_id
    for no key update skip locked;
    if not found then
        return not exists (
            select from jobq_private.batch as b where b.batch_id = settle_batch.batch_id
        );
    elsif _batch.ended_at is not null and not exists (  -- none was redriven after the end
        select from jobq_private.job as c
        where c.job_id in (_batch.on_success, _batch.on_end, _batch.on_first_death)
        and c.state = 'blocked'
    ) then
        return true;
    end if;
    _is_over := _batch.sealed_at is not null and not exists (
        select from jobq_private.job as j where j.batch_id = _batch.batch_id
    );
    if _is_over then
        perform from jobq_private.batch as b
        where b.batch_id = _batch.batch_id
        for update skip locked;
        if not found then
            return false;
        end if;
        _is_over := not exists (  -- a member may have been added before the lock
            select from jobq_private.job as j where j.batch_id = _batch.batch_id
        );
    end if;
    _has_dead := _batch.on_first_death is not null and exists (
        select from jobq_private.job_archive as a
        where a.batch_id = _batch.batch_id and a.state = 'dead'
    );
    if _has_dead or _is_over then
        _is_settled := jobq_private.run_callback(
            _batch.on_first_death, case when _has_dead then 'queued' else 'cancelled' end,
            format('no job of batch %s is dead', _batch.batch_id)
        );
    end if;
    if _is_over then
        _has_failed := _batch.has_lost or exists (
            select from jobq_private.job_archive as a
            where a.batch_id = _batch.batch_id and a.state in ('dead', 'cancelled')
        );
        -- Tries each job, even if another one's row is locked.
        _is_settled := jobq_private.run_callback(
            _batch.on_success, case when _has_failed then 'cancelled' else 'queued' end,
            format('not all jobs of batch %s have succeeded', _batch.batch_id)
        ) and _is_settled;
        _is_settled := jobq_private.run_callback(_batch.on_end, 'queued') and _is_settled;
        update jobq_private.batch as b
        set ended_at = clock_timestamp()
        where b.batch_id = _batch.batch_id and b.ended_at is null;
    end if;
    return _is_settled;
end
$$;
