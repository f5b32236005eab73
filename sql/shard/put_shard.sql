-- Purpose: Adds a database to the cluster, or sets the number of this one. Only for jobq_owner.
-- Invariant: new ids contain the number. A database that has had jobs keeps its number (0 until
-- one is set), since their ids contain it. Raises: 22004, 22023.
-- Argument url: the address for routers and clients, a libpq URL without a password.
-- Argument is_own: whether it is the database of this call.
-- Example: select jobq.put_shard(0, 'postgresql://one.example.org/jobq', is_own => true);
create or replace function jobq.put_shard(
    shard_id integer, url text, is_own boolean default false
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('shard_id, url and is_own', num_nulls(shard_id, url, is_own));
    perform jobq_private.check_argument(case
        when put_shard.shard_id not between 0 and 255 then 'shard_id must be from 0 to 255'
        when length(put_shard.url) not between 1 and 2048
            or put_shard.url ~ '://[^/@]*:[^/@]*@' or put_shard.url ~* 'password='
        then 'url must have 1 to 2048 characters and no password'
        when exists (
            select from jobq_private.shard as s
            where s.shard_id = put_shard.shard_id and s.removed_at is not null
        )
        then format('shard %s was removed; ids contain its number', put_shard.shard_id)
    end);
    if put_shard.is_own and put_shard.shard_id <> (
        select g.shard_id from jobq_private.setting as g
    ) then
        perform jobq_private.become_shard(put_shard.shard_id);
    end if;
    update jobq_private.shard as s
    set is_own = false
    where s.is_own and put_shard.is_own and s.shard_id <> put_shard.shard_id;
    insert into jobq_private.shard as s (shard_id, url, is_own)
    values (put_shard.shard_id, put_shard.url, put_shard.is_own)
    on conflict on constraint shard_pkey do update
    set url = excluded.url, is_own = excluded.is_own;
    perform jobq_private.record_audit('put_shard', put_shard.shard_id::text, put_shard.url);
end
$$;
