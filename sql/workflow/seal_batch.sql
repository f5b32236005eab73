-- Purpose: Seals a batch: it has all members, and ends when none of them is live.
-- Invariant: until the batch ends, members can still be added, for example by running members; it
-- ends when no member is live, at once if it is empty. Sealing twice is harmless.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Example: select jobq.seal_batch(:'batch');
create or replace function jobq.seal_batch(batch_id uuid)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(seal_batch.batch_id);
begin
    update jobq_private.batch as b
    set sealed_at = now()
    where b.batch_id = _batch.batch_id and b.sealed_at is null;
    insert into jobq_private.pending (about, id) values ('batch', _batch.batch_id);
    perform jobq_private.wake(array[_batch.queue]);
end
$$;
grant execute on function jobq.seal_batch to jobq_producer, jobq_worker, jobq_operator;
