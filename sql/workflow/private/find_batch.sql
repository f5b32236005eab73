-- Purpose: a batch, or an error if it does not exist.
-- Invariant: reads only. Raises: 22004, JQ001.
create or replace function jobq_private.find_batch(batch_id uuid)
returns jobq_private.batch language plpgsql stable as $$
declare
    _batch jobq_private.batch;
begin
    perform jobq_private.check_given('batch_id', num_nulls(find_batch.batch_id));
    select b.* into _batch
    from jobq_private.batch as b
    where b.batch_id = find_batch.batch_id;
    if not found then
        perform jobq_private.raise_error(
            'BATCH_NOT_FOUND', format('batch_id %s', find_batch.batch_id)
        );
    end if;
    return _batch;
end
$$;
