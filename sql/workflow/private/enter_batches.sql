-- Purpose: let new jobs become members of these batches.
-- Invariant: who adds holds the lock of the batch shared until the commit, and then looks
-- whether it has ended; resolve() ends a batch only with the lock for itself. So no batch
-- ends while a member is on its way. A transaction with one snapshot cannot see an end since:
-- it locks the batch's row, and fails to serialize. Raises: JQ001, JQ002, 40001.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.enter_batches(batch_ids uuid[])
returns void
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
begin
    for _batch_id in
        select distinct b.batch_id from unnest(enter_batches.batch_ids) as b (batch_id) order by 1
    loop
        perform pg_advisory_xact_lock_shared(_batching, hashtext(_batch_id::text));
        if current_setting('transaction_isolation') <> 'read committed' then
            perform from jobq_private.batch as b where b.batch_id = _batch_id for share;
        end if;
        _batch := jobq_private.find_batch(_batch_id);
        if _batch.ended_at is not null then
            perform jobq_private.raise_error('BATCH_ENDED', format(
                'batch_id %s ended at %s', _batch_id, _batch.ended_at
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.enter_batches from public;

comment on function jobq_private.enter_batches is
'Lets new jobs become members of batches that have not ended.';
