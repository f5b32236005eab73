-- Purpose: Sets which shards receive new keys from a given time. Only for jobq_owner.
-- Invariant: existing jobs stay on their shard. Epochs are numbered without gaps, and an epoch
-- that has begun never changes, so a key still finds the job that was created with it. Repeating
-- an epoch changes nothing. Raises: 22004, 22023.
-- Argument epoch: number of the epoch: one more than the last.
-- Argument shard_ids: the shards that get new keys, each declared by put_shard; a shard
-- that is left out is drained.
-- Argument began_at: the start; choose some seconds in the future, so that routers and
-- clients read it in time. Null means now.
-- Example: select jobq.put_epoch(1, '{0}');
create or replace function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _last integer;
begin
    perform jobq_private.check_given('epoch and shard_ids', num_nulls(epoch, shard_ids));
    perform jobq_private.check_argument(case
        when coalesce(array_ndims(put_epoch.shard_ids), 0) <> 1 or exists (
            select from unnest(put_epoch.shard_ids) as i (shard_id)
            left join jobq_private.shard as s using (shard_id)
            group by i.shard_id
            having count(*) > 1 or count(s.shard_id) = 0
        )
        then 'shard_ids must be shards added by put_shard, each once'
        when put_epoch.began_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'began_at must be in the years 1 to 9999'
    end);
    lock table jobq_private.shard_epoch in share row exclusive mode;
    select coalesce(max(e.epoch), 0) into _last from jobq_private.shard_epoch as e;
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids = put_epoch.shard_ids
    ) then
        return;
    end if;
    perform jobq_private.check_argument(case
        when put_epoch.epoch <> _last + 1 then format('epoch must be %s', _last + 1)
    end);
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()));
    perform jobq_private.record_audit(
        'put_epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;
