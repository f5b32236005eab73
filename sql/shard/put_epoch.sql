-- Purpose: say which shards get new keys from a time on.
-- Invariant: what lives stays where it is. Epochs are numbered without gaps, and one that has
-- begun is never changed, so that whoever holds a key finds what was made with it. The same
-- epoch put again changes nothing.
-- Raises: 22004, 22023.
-- Argument epoch: its number: that of the last and 1.
-- Argument shard_ids: the shards that get new keys, each of which put_shard has named; a shard
-- that is left out is drained.
-- Argument began_at: from when on; give one some seconds ahead, for routers and clients to
-- learn of it. Null means now.
-- Returns: nothing.
-- Example: select jobq.put_epoch(1, '{0}');
create or replace function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _last integer;
begin
    if num_nulls(put_epoch.epoch, put_epoch.shard_ids) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'epoch and shard_ids');
    elsif coalesce(array_ndims(put_epoch.shard_ids), 0) <> 1 or exists (
        select from unnest(put_epoch.shard_ids) as i (shard_id)
        left join jobq_private.shard as s using (shard_id)
        group by i.shard_id
        having count(*) > 1 or count(s.shard_id) = 0
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_ids must be shards added by put_shard, each once'
        );
    elsif put_epoch.began_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'began_at must be in the years 1 to 9999'
        );
    end if;
    lock table jobq_private.shard_epoch in share row exclusive mode;
    select max(e.epoch) into _last from jobq_private.shard_epoch as e;
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids = put_epoch.shard_ids
    ) then
        return;
    elsif put_epoch.epoch <> coalesce(_last, 0) + 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('epoch must be %s', coalesce(_last, 0) + 1)
        );
    end if;
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()));
    perform jobq_private.record_audit(
        'put_epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;

comment on function jobq.put_epoch is
'Sets which shards receive new keys from a given time. Only for jobq_owner.';
