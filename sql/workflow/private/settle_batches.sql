-- Purpose: call back about the first death in these batches, and about their ends.
-- Invariant: whoever has the batch's row and its lock, which keeps new members out, looks with
-- a new snapshot whether a member lives. Returns how many jobs moved, and the batches that
-- somebody else holds, who may not see all ends. Raises: nothing.
create or replace function jobq_private.settle_batches(
    batch_ids uuid[], out moved bigint, out left_alone uuid[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _batch_id uuid;
    _batch jobq_private.batch;
    _outcome text;
begin
    moved := 0;
    left_alone := '{}';
    foreach _batch_id in array settle_batches.batch_ids loop
        select b.* into _batch
        from jobq_private.batch as b
        where b.batch_id = _batch_id and jobq_private.goes_on(b)
        for update skip locked;
        if not found then
            left_alone := left_alone || array(
                select b.batch_id
                from jobq_private.batch as b
                where b.batch_id = _batch_id and jobq_private.goes_on(b)
            );
            continue;
        end if;
        if _batch.on_first_death is not null and exists (
            select from jobq_private.job_archive as a
            where a.batch_id = _batch_id and a.state = 'dead'
        ) then
            moved := moved + jobq_private.call_back(_batch.on_first_death, 'queued');
        end if;
        continue when _batch.sealed_at is null
            or not pg_try_advisory_xact_lock(_batching, hashtext(_batch_id::text));
        continue when exists (
            select from jobq_private.job as j where j.batch_id = _batch_id
        );
        _outcome := case
            when _batch.has_lost or exists (
                select from jobq_private.job_archive as a
                where a.batch_id = _batch_id and a.state in ('dead', 'cancelled')
            )
            then 'cancelled' else 'queued'
        end;
        moved := moved
            + jobq_private.call_back(
                _batch.on_success, _outcome,
                format('not all jobs of batch %s have succeeded', _batch_id)
            )
            + jobq_private.call_back(_batch.on_end, 'queued')
            + jobq_private.call_back(
                _batch.on_first_death, 'cancelled', format('no job of batch %s is dead', _batch_id)
            );
        update jobq_private.batch as b
        set ended_at = coalesce(b.ended_at, clock_timestamp())
        where b.batch_id = _batch_id
        and not exists (
            select from jobq_private.job as c
            where c.job_id in (b.on_success, b.on_end, b.on_first_death)
            and c.state = 'blocked'
        );
    end loop;
end
$$;

revoke all on function jobq_private.settle_batches from public;

comment on function jobq_private.settle_batches is
'Calls back about the first death in batches, and about their ends.';
