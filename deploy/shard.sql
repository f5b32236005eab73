-- Deploy jobq:shard to pg
-- Made by sql/snapshot.py from sql/shard/: edit that.
begin;
set local role jobq_owner;

-- Purpose: the number of this database in its cluster; 0 where it is none's.
-- Invariant: a constant, so that ids cost no look at a table: put_shard writes it anew, and
-- what is there stays. No SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.own_shard
do $do$
begin
    if to_regprocedure('jobq_private.own_shard()') is null then
        create function jobq_private.own_shard()
        returns integer
        language sql
        immutable
        parallel safe
        security invoker
        as 'select 0';
    end if;
end
$do$;

revoke all on function jobq_private.own_shard() from public;

comment on function jobq_private.own_shard() is
'The number of this database in its cluster.';

-- Purpose: have the ids of this database carry another number.
-- Invariant: refused where jobs exist, whose ids carry the old one. What calls own_shard was
-- planned with it as a constant, and is planned anew. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.job)
    or exists (select from jobq_private.job_archive)
    or exists (select from jobq_private.schedule) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'this database has jobs or schedules, and keeps its number '
            || jobq_private.own_shard()
        );
    end if;
    execute format(
        'create or replace function jobq_private.own_shard() returns integer '
        'language sql immutable parallel safe security invoker as %L',
        'select ' || become_shard.shard_id
    );
end
$$;

revoke all on function jobq_private.become_shard from public;

comment on function jobq_private.become_shard is
'Has the ids of this database carry another number.';

-- Purpose: the shard for a new job, by the rule that routers and clients share.
-- Invariant: what belongs together stays together: by batch_id, else after, the shard of those;
-- else by the first key given, the shard for which md5 of number, colon and key is greatest, so
-- that a shard that is added takes keys from all others, and no other key moves. md5 is the
-- same in every version of PostgreSQL and every language. Without any, one at random.
-- Raises: 22004.
-- Argument shard_ids: the shards that get new keys, as the epoch has them.
-- Argument after: the jobs that it waits for, whose first decides.
-- Argument batch_id: the batch that it becomes a member of.
-- Returns: one of shard_ids, or the shard of the batch or the job that it waits for.
-- Example: select jobq.choose_shard('{0, 1}', concurrency_key => 'customer-7');
create or replace function jobq.choose_shard(
    shard_ids integer[],
    concurrency_key text default null,
    idempotency_key text default null,
    dedup_key text default null,
    after uuid[] default null,
    batch_id uuid default null
)
returns integer
language plpgsql
volatile
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _key constant text := coalesce(
        choose_shard.concurrency_key, choose_shard.idempotency_key, choose_shard.dedup_key
    );
begin
    if coalesce(cardinality(choose_shard.shard_ids), 0) = 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_ids');
    end if;
    return coalesce(
        jobq.shard_of(coalesce(choose_shard.batch_id, choose_shard.after[1])),
        case
            when _key is null
            then choose_shard.shard_ids[
                1 + floor(random() * cardinality(choose_shard.shard_ids))::integer
            ]
            when cardinality(choose_shard.shard_ids) = 1 then choose_shard.shard_ids[1]
            else (
                select s.shard_id
                from unnest(choose_shard.shard_ids) as s (shard_id)
                order by md5(s.shard_id || ':' || _key) collate "C" desc
                limit 1
            )
        end
    );
end
$$;

revoke all on function jobq.choose_shard from public;
grant execute on function jobq.choose_shard
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.choose_shard is
'Returns the shard that a new job goes to, by its keys or what it belongs to.';

-- Purpose: which shards got new keys from when on, the newest first, and for how long keys of
-- the epochs before may live.
-- Invariant: reads only. Raises: nothing.
-- Column epoch: its number.
-- Column shard_ids: the shards that get new keys.
-- Column began_at: from when on; it may lie ahead.
-- Column keys_until: until when idempotency keys of the epoch before may live.
-- Returns: a row for each epoch; none in a database that is in no cluster.
-- Example: select epoch, shard_ids from jobq.list_epochs();
create or replace function jobq.list_epochs()
returns table (
    epoch integer, shard_ids integer[], began_at timestamptz, keys_until timestamptz
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.epoch, e.shard_ids, e.began_at, e.began_at + s.key_retention
    from jobq_private.shard_epoch as e
    cross join jobq_private.setting as s
    order by e.epoch desc
$$;

revoke all on function jobq.list_epochs from public;
grant execute on function jobq.list_epochs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_epochs is
'Lists which shards get new keys, and from when on, the newest first.';

-- Purpose: the databases of the cluster, as this one knows them.
-- Invariant: reads only. Raises: nothing.
-- Column shard_id: its number.
-- Column url: how routers and clients reach it.
-- Column is_own: whether it is this database.
-- Returns: a row for each shard; none in a database that is in no cluster.
-- Example: select shard_id, url from jobq.list_shards();
create or replace function jobq.list_shards()
returns table (shard_id integer, url text, is_own boolean)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.shard_id, s.url, s.is_own
    from jobq_private.shard as s
    order by s.shard_id
$$;

revoke all on function jobq.list_shards from public;
grant execute on function jobq.list_shards
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_shards is 'Lists the databases of the cluster.';

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
volatile
parallel unsafe
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
            'INVALID_ARGUMENT', 'shard_ids must be shards that put_shard has named, each once'
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
        'put epoch', put_epoch.epoch::text, put_epoch.shard_ids::text
    );
end
$$;

revoke all on function jobq.put_epoch from public;

comment on function jobq.put_epoch is
'Says which shards get new keys from a time on. For jobq_owner alone.';

-- Purpose: name a database of the cluster, or say that it is this one.
-- Invariant: the ids that are made from then on carry the number. A database that has had jobs
-- keeps its number, 0 until it is given one, since their ids carry it.
-- Raises: 22004, 22023.
-- Argument shard_id: its number, 0 to 255.
-- Argument url: how routers and clients reach it, as a libpq URL without a password.
-- Argument is_own: whether it is the database of this call.
-- Returns: nothing.
-- Example: select jobq.put_shard(0, 'postgresql://one.example.org/jobq', is_own => true);
create or replace function jobq.put_shard(
    shard_id integer, url text, is_own boolean default false
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(put_shard.shard_id, put_shard.url, put_shard.is_own) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'shard_id, url and is_own');
    elsif put_shard.shard_id not between 0 and 255 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_id must be from 0 to 255'
        );
    elsif length(put_shard.url) not between 1 and 2048 or put_shard.url ~ '://[^/@]*:[^/@]*@'
    or put_shard.url ~* 'password=' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'url has 1 to 2048 characters, and no password'
        );
    end if;
    if put_shard.is_own and put_shard.shard_id <> jobq_private.own_shard() then
        perform jobq_private.become_shard(put_shard.shard_id);
    end if;
    update jobq_private.shard as s
    set is_own = false
    where s.is_own and put_shard.is_own and s.shard_id <> put_shard.shard_id;
    insert into jobq_private.shard as s (shard_id, url, is_own)
    values (put_shard.shard_id, put_shard.url, put_shard.is_own)
    on conflict on constraint shard_pkey do update
    set url = excluded.url, is_own = excluded.is_own;
    perform jobq_private.record_audit('put shard', put_shard.shard_id::text, put_shard.url);
end
$$;

revoke all on function jobq.put_shard from public;

comment on function jobq.put_shard is
'Names a database of the cluster, or gives this one its number. For jobq_owner alone.';

-- Purpose: the shard that a job is on, by its id: the tenth byte, which stands as two digits before
-- the last dash. That of a batch or a schedule says so too.
-- Invariant: reads the id alone; a database that is in no cluster is shard 0. Raises: nothing.
-- Returns: its number, 0 to 255; null for null.
-- Example: select jobq.shard_of('0198c0de-1234-7abc-9f03-0123456789ab');
create or replace function jobq.shard_of(job_id uuid)
returns integer
language sql
immutable
strict
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select get_byte(uuid_send(shard_of.job_id), 9)
$$;

revoke all on function jobq.shard_of from public;
grant execute on function jobq.shard_of
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.shard_of is
'Returns the number of the shard that a job is on, which its id tells.';

commit;
