-- Purpose: Sets which shard takes over the jobs of a drained shard, or removes the
-- shard. Only for jobq_owner.
-- Invariant: the shard receives no new keys. Its successor does not change while it exists,
-- because jobs may have moved there. A shard is removed only if it has no unfinished job and no
-- schedule; what it checks is its own, so remove it there first. The same call again changes
-- nothing. Raises: 22004, 22023.
-- Argument shard_id: the shard.
-- Argument successor: the shard that takes over.
-- Argument is_removed: whether ids and keys of the shard lead to the successor from now on.
-- Example: select jobq_internal.put_successor(1, 0);
create or replace function jobq_internal.put_successor(
    shard_id integer, successor integer, is_removed boolean default false
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _shard jobq_private.shard;
begin
    perform jobq_private.check_given(
        'shard_id, successor and is_removed', num_nulls(shard_id, successor, is_removed)
    );
    lock table jobq_private.shard in share row exclusive mode;
    select s.* into _shard from jobq_private.shard as s
    where s.shard_id = put_successor.shard_id;
    if _shard.successor = put_successor.successor
        and (_shard.removed_at is not null or not put_successor.is_removed)
    then
        return;
    end if;
    perform jobq_private.check_argument(case
        when _shard.shard_id is null or _shard.successor <> put_successor.successor
            or put_successor.successor = put_successor.shard_id or not exists (
                select from jobq_private.shard as s
                where s.shard_id = put_successor.successor and s.removed_at is null
                and s.successor is distinct from put_successor.shard_id
            )
        then format('successor must be another shard%s',
            ', which is ' || _shard.successor || ' and does not change')
        when exists (
            select from jobq_private.shard_epoch as e
            where put_successor.shard_id = any(e.shard_ids)
            and not exists (
                select from jobq_private.shard_epoch as newer
                where newer.epoch > e.epoch and newer.began_at <= now()
            )
        )
        then format('shard %s still receives new keys; drain it first', put_successor.shard_id)
        when put_successor.is_removed and _shard.is_own then (
            select format('shard %s still has %s', put_successor.shard_id,
                string_agg(l.count || ' ' || l.type, ', '))
            from jobq_internal.list_leftovers() as l
            where l.type <> 'idempotency keys'
            having count(*) > 0
        )
    end);
    -- Shards that were removed before lead to the same successor.
    update jobq_private.shard as s
    set successor = put_successor.successor, removed_at = coalesce(
        s.removed_at, case when put_successor.is_removed then now() end
    )
    where s.shard_id = put_successor.shard_id
    or put_successor.is_removed and s.successor = put_successor.shard_id and s.removed_at is not null;
    perform jobq_private.record_audit(
        'put_successor', put_successor.shard_id::text, put_successor.successor::text
    );
end
$$;
