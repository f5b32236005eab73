-- Purpose: add new jobs to these batches as members.
-- Invariant: locks the row of each batch FOR KEY SHARE until the commit, and
-- settle_batch() ends a batch only with an exclusive lock of its row, so no batch ends
-- while a member is being added. Row locks take no space in the server's lock table,
-- whatever the number of batches. A transaction with one snapshot fails to serialize if
-- the row has changed. Raises: JQ001, JQ002, 40001.
create or replace function jobq_private.join_batches(batch_ids uuid[])
returns void language plpgsql as $$
declare
    _held jobq_private.batch[];
    _batch_id uuid;
    _ended_at timestamptz;
begin
    _held := array(
        select b
        from jobq_private.batch as b
        where b.batch_id = any(join_batches.batch_ids)
        order by b.batch_id
        for key share
    );
    select i.batch_id, b.ended_at into _batch_id, _ended_at
    from unnest(join_batches.batch_ids) as i (batch_id)
    left join unnest(_held) as b on b.batch_id = i.batch_id
    where b.batch_id is null or b.ended_at is not null
    order by i.batch_id
    limit 1;
    if _ended_at is not null then
        perform jobq_private.raise_error('BATCH_ENDED', format(
            'batch_id %s ended at %s', _batch_id, _ended_at
        ));
    elsif found then
        perform jobq_private.raise_error('BATCH_NOT_FOUND', format('batch_id %s', _batch_id));
    end if;
end
$$;
