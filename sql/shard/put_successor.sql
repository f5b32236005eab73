-- Purpose: Sets which shard takes over the jobs of a drained shard, or removes the
-- shard. Only for jobq_owner.
-- Invariant: the shard receives no new keys. Its successor does not change while it exists,
-- because jobs may have moved there. A shard is removed only if it has no unfinished job
-- and no schedule; what it checks is its own, so remove it there first. The same call again
-- changes nothing.
-- Raises: 22004, 22023.
-- Argument shard_id: the shard.
-- Argument successor: the shard that takes over.
-- Argument is_removed: whether ids and keys of the shard lead to the successor from now on.
-- Returns: nothing.
-- Example: select jobq_internal.put_successor(1, 0);
create or replace function jobq_internal.put_successor(
    shard_id integer, successor integer, is_removed boolean default false
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _shard jobq_private.shard;
    _left text;
begin
    if num_nulls(put_successor.shard_id, put_successor.successor, put_successor.is_removed) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_id, successor and is_removed');
    end if;
    lock table jobq_private.shard in share row exclusive mode;
    select s.* into _shard from jobq_private.shard as s
    where s.shard_id = put_successor.shard_id;
    if _shard.successor = put_successor.successor
        and (_shard.removed_at is not null or not put_successor.is_removed)
    then
        return;
    elsif _shard.shard_id is null or _shard.successor <> put_successor.successor
        or put_successor.successor = put_successor.shard_id or not exists (
            select from jobq_private.shard as s
            where s.shard_id = put_successor.successor and s.removed_at is null
            and (s.successor is null or s.successor <> put_successor.shard_id)
        )
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'successor must be another shard%s',
            coalesce(', which is ' || _shard.successor || ' and does not change', '')
        ));
    elsif exists (
        select from jobq_private.shard_epoch as e
        where put_successor.shard_id = any(e.shard_ids)
        and not exists (
            select from jobq_private.shard_epoch as newer
            where newer.epoch > e.epoch and newer.began_at <= now()
        )
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'shard %s still receives new keys; drain it first', put_successor.shard_id
        ));
    end if;
    if put_successor.is_removed and _shard.is_own then
        select string_agg(l.count || ' ' || l.type, ', ') into _left
        from jobq_internal.list_leftovers() as l
        where l.type <> 'idempotency keys';
        if _left is not null then
            perform jobq_private.raise_error('INVALID_ARGUMENT', format(
                'shard %s still has %s', put_successor.shard_id, _left
            ));
        end if;
    end if;
    update jobq_private.shard as s
    set successor = put_successor.successor,
        removed_at = case when put_successor.is_removed then now() end
    where s.shard_id = put_successor.shard_id;
    if put_successor.is_removed then
        update jobq_private.shard as s
        set successor = put_successor.successor
        where s.successor = put_successor.shard_id and s.removed_at is not null;
    end if;
    perform jobq_private.record_audit(
        'put_successor', put_successor.shard_id::text, put_successor.successor::text
    );
end
$$;
