-- The map of a router and the functions that choose a shard. jobq_internal.list_router_statements()
-- returns the rest. Run both as a superuser in an empty database of PostgreSQL 15 or newer with
-- PL/Proxy, as `jobq cluster init` does. Running them again keeps the map.

set local check_function_bodies = off;

do $$
begin
    if getdatabaseencoding() <> 'UTF8' then
        raise exception 'the database of a router must be encoded in UTF8'
        using detail = 'clients choose the shard of a key by the md5 of its UTF-8 encoding';
    elsif to_regclass('jobq_private.job') is not null then
        raise exception 'the database of a router must be empty: this one has jobs of its own'
        using hint = 'name another database with --database, and this one with --shard';
    end if;
end
$$;

create extension if not exists plproxy;

do $$
declare
    _role text;
begin
    foreach _role in array array[
        'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
    ] loop
        if not exists (select from pg_roles as r where r.rolname = _role) then
            execute format('create role %I nologin', _role);
        end if;
    end loop;
end
$$;

-- Calls are short, but the planner would compile the statement of each batch.
do $$
begin
    execute format('alter database %I set jit = off', current_database());
end
$$;

drop schema if exists jobq, jobq_internal, jobq_router cascade;
create schema jobq;
create schema jobq_internal;
create schema jobq_router;
create schema if not exists jobq_private;

-- As on a shard, with the partition: the number of the shard among the options of the server.
create table if not exists jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    successor integer,
    removed_at timestamptz,
    partition integer not null, -- that of the successor, if removed
    constraint shard_pkey primary key (shard_id)
);

-- map_shards() numbers a new shard after the others.
alter table jobq_private.shard alter column partition set default 2147483647;

create table if not exists jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null,
    slots bytea not null, -- the partition of each slot of keys, a byte each
    constraint shard_epoch_pkey primary key (epoch)
);

-- A slot is read without the others.
alter table jobq_private.shard_epoch alter column slots set storage external;

-- shard_id is null: a router is no shard.
create table if not exists jobq_private.setting (key_retention interval not null, shard_id integer);

insert into jobq_private.setting (key_retention)
select '30 days'
where not exists (select from jobq_private.setting);

drop view if exists jobq_private.error;
drop function if exists jobq_private.record_audit;

grant usage on schema jobq, jobq_internal, jobq_router, jobq_private
to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader;
grant select on all tables in schema jobq_private
to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader;

-- ---- the map, which put_shard(), put_successor() and put_epoch() write, as on a shard

grant insert, update on jobq_private.shard, jobq_private.shard_epoch to jobq_owner;

create function jobq_private.record_audit(action text, subject text, reason text default null)
returns void
language sql
as $$
    select
$$;

-- Numbers the shards that are not removed without gaps, and writes their addresses into the
-- options of the server, by these numbers.
create function jobq_router.map_shards()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _options text;
begin
    if exists (
        select from jobq_private.shard as s where s.is_own or s.url ~ '://|password=|user='
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a router has url as host=... port=... dbname=..., without a user'
        );
    end if;
    update jobq_private.shard as s
    set partition = n.partition
    from (
        select l.shard_id, row_number() over (order by l.partition, l.shard_id) - 1 as partition
        from jobq_private.shard as l
        where l.removed_at is null
    ) as n
    where n.shard_id = case when s.removed_at is null then s.shard_id else s.successor end
    and s.partition <> n.partition;
    if found then
        update jobq_private.shard_epoch as e set slots = jobq_router.slots_of(e.shard_ids);
    end if;
    if not exists (select from jobq_private.shard) then
        return null;
    elsif not exists (select from pg_foreign_server as f where f.srvname = 'jobq') then
        create server jobq foreign data wrapper plproxy
        options (modular_mapping '1', query_timeout '60', p0 'dbname=none');
        grant usage on foreign server jobq
        to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
    end if;
    select string_agg(case
        when s.partition is null then 'drop ' || o.name
        else format('%s p%s %L', case when o.name is null then 'add' else 'set' end,
            s.partition, s.url || ' connect_timeout=5')
    end, ', ')
    into _options
    from (select h.* from jobq_private.shard as h where h.removed_at is null) as s
    full join (
        select split_part(v.option, '=', 1) as name
        from pg_foreign_server as f
        cross join unnest(f.srvoptions) as v (option)
        where f.srvname = 'jobq' and v.option ~ '^p[0-9]+='
    ) as o on o.name = 'p' || s.partition;
    execute format('alter server jobq options (%s)', _options);
    return null;
end
$$;

create or replace trigger map_shards
after insert or update of url, is_own, successor, removed_at on jobq_private.shard
for each statement execute function jobq_router.map_shards();

create function jobq_router.map_epoch()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.slots := jobq_router.slots_of(new.shard_ids);
    return new;
end
$$;

create or replace trigger map_epoch
before insert on jobq_private.shard_epoch
for each row execute function jobq_router.map_epoch();

-- Sets how long idempotency keys are valid on the shards. Until then, keys of earlier epochs are
-- looked up.
create function jobq_router.keep_keys(key_retention interval)
returns void
language sql
as $$
    update jobq_private.setting as s set key_retention = keep_keys.key_retention;
$$;

-- The current epoch, its partitions, and whether all keys of earlier epochs have expired.
create or replace view jobq_private.current_epoch as
select
    e.epoch, e.slots,
    array(
        select h.partition from jobq_private.shard as h
        where h.shard_id = any (e.shard_ids)
        order by h.shard_id
    ) as partitions,
    e.epoch = 1 or e.began_at + s.key_retention <= now() as is_settled
from jobq_private.shard_epoch as e
cross join jobq_private.setting as s
where e.epoch = 1 or e.began_at <= now()
order by e.epoch desc
limit 1;

-- The earlier epochs whose keys may still be valid, the newest first.
create or replace view jobq_private.living_epoch as
select e.epoch, e.slots
from jobq_private.shard_epoch as e
join jobq_private.shard_epoch as newer on newer.epoch = e.epoch + 1
cross join jobq_private.setting as s
where newer.began_at <= now() and newer.began_at + s.key_retention > now()
order by e.epoch desc;

grant select on jobq_private.current_epoch, jobq_private.living_epoch
to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader;

-- ---- which partition a call uses

-- The partition of each slot, a byte each, while these shards receive new keys, as choose_shard()
-- chooses it.
create function jobq_router.slots_of(shard_ids integer[])
returns bytea
language sql
stable
as $$
    select string_agg(set_byte('\x00', 0, p.partition), '' order by n)
    from generate_series(0, 16383) as n
    cross join lateral (
        select s.partition
        from jobq_private.shard as s
        where s.shard_id = any (slots_of.shard_ids)
        order by md5(s.shard_id || ':' || n) collate "C" desc
        limit 1
    ) as p
$$;

-- The partition of a key: a byte of the slots of an epoch, chosen as choose_shard() chooses it.
create function jobq_router.partition_of_key(slots bytea, key text)
returns integer
language sql
immutable
as $$
    select get_byte(substr(slots, 1 + (('x' || left(md5(key), 4))::"bit"::integer & 16383), 1), 0)
$$;

-- The partition of a job: that of its id's shard, or of the successor if the job has moved. For
-- an id of no shard, any shard raises the error.
create function jobq_router.partition_of_id(job_id uuid)
returns integer
language plpgsql
as $$
declare
    _partition integer;
    _next integer;
begin
    if partition_of_id.job_id is null then
        return null;
    end if;
    select s.partition, n.partition into _partition, _next
    from jobq_private.shard as s
    left join jobq_private.shard as n on n.shard_id = s.successor and s.removed_at is null
    where s.shard_id = jobq_internal.shard_of(partition_of_id.job_id);
    if _next is not null and exists (
        select from jobq_router.list_moved(_partition, array[partition_of_id.job_id])
    ) then
        return _next;
    end if;
    return coalesce(_partition, 0);
end
$$;

create function jobq_router.list_moved(partition_ integer, job_ids uuid[])
returns table (job_id uuid, shard_id integer)
language plproxy
as $$
    cluster 'jobq'; run on partition_; select * from jobq_internal.list_moved(job_ids);
$$;

create function jobq_router.random_partition()
returns integer
language sql
as $$
    select e.partitions[1 + floor(random() * cardinality(e.partitions))::integer]
    from jobq_private.current_epoch as e
$$;

-- The partition of a new job: that of the jobs that it belongs to, else that of its key. If an
-- earlier epoch chose another partition for the idempotency key and the key is valid there, that.
create function jobq_router.partition_of_new(
    kind text, concurrency_key text, idempotency_key text, dedup_key text, after uuid[], batch_id uuid
)
returns integer
language plpgsql
as $$
declare
    _key constant text := coalesce(concurrency_key, idempotency_key, dedup_key);
    _is_settled boolean;
    _partition integer;
    _earlier integer;
begin
    if batch_id is not null or after[1] is not null then
        return jobq_router.partition_of_id(coalesce(batch_id, after[1]));
    elsif _key is null then
        return jobq_router.random_partition();
    end if;
    select jobq_router.partition_of_key(e.slots, _key), e.is_settled into _partition, _is_settled
    from jobq_private.current_epoch as e;
    if idempotency_key is null or _is_settled then
        return _partition;
    end if;
    for _earlier in
        select jobq_router.partition_of_key(e.slots, _key) from jobq_private.living_epoch as e
    loop
        if _earlier <> _partition
            and jobq_router.find_job(_earlier, kind, idempotency_key) is not null
        then
            return _earlier;
        end if;
    end loop;
    return _partition;
end
$$;

create function jobq_router.find_job(partition_ integer, kind text, idempotency_key text)
returns uuid
language plproxy
as $$
    cluster 'jobq'; run on partition_; select jobq_internal.find_job(kind, idempotency_key);
$$;

-- The first epoch chooses the partition of a schedule, by its name.
create function jobq_router.partition_of_schedule(schedule text)
returns integer
language plpgsql
as $$
begin
    return jobq_router.partition_of_id(partition_of_schedule.schedule::uuid);
exception when invalid_text_representation then
    return (
        select s.partition
        from jobq_private.shard_epoch as e
        cross join lateral jobq.choose_shard(e.shard_ids, partition_of_schedule.schedule) as c (shard_id)
        join jobq_private.shard as s on s.shard_id = c.shard_id
        where e.epoch = 1
    );
end
$$;

-- ---- batches are split by partition

create function jobq_router.ids_of(failures jsonb)
returns uuid[]
language sql
immutable
as $$
    select array(
        select (f.failure ->> 'job_id')::uuid
        from jsonb_array_elements(failures) with ordinality as f (failure, n)
        order by f.n
    )
$$;

-- Each partition and the positions of its ids; null if all have one partition. Lists of
-- different sizes are not split: the shard refuses them.
create function jobq_router.parts_of_list(job_ids uuid[], sizes integer[])
returns table (partition integer, places integer[])
language plpgsql
as $$
declare
    _partitions constant integer[] := array(
        select coalesce(jobq_router.partition_of_id(i.job_id), 0)
        from unnest(parts_of_list.job_ids) with ordinality as i (job_id, n)
        order by i.n
    );
begin
    if _partitions = '{}' or _partitions[1] = all (_partitions)
    or cardinality(_partitions) <> any (sizes) then
        return query select coalesce(_partitions[1], jobq_router.random_partition()), null::integer[];
        return;
    end if;
    return query
    select p.partition, array_agg(p.n::integer order by p.n)
    from unnest(_partitions) with ordinality as p (partition, n)
    group by p.partition;
end
$$;

create function jobq_router.pick(list anyarray, places integer[])
returns anyarray
language sql
immutable
as $$
    select case
        when list is null or places is null then list
        else array(select list[p.place] from unnest(places) with ordinality as p (place, n) order by p.n)
    end
$$;

create function jobq_router.pick(list jsonb, places integer[])
returns jsonb
language sql
immutable
as $$
    select case
        when list is null or places is null then list
        else (
            select jsonb_agg(list -> p.place - 1 order by p.n)
            from unnest(places) with ordinality as p (place, n)
        )
    end
$$;

-- The jobs of each partition, and their positions; null if all have one partition. Jobs without a
-- key or a parent have one partition.
create function jobq_router.parts_of_jobs(jobs jsonb)
returns table (partition integer, part jsonb, places integer[])
language plpgsql
set enable_sort = off -- so that each part keeps the order of its jobs
as $$
declare
    _bound constant jsonpath[] := '{$[*].idempotency_key,$[*].concurrency_key,$[*].dedup_key,$[*].after,$[*].batch_id}';
    _lot constant integer := jobq_router.random_partition();
    _slots bytea;
    _is_settled boolean;
begin
    if jsonb_typeof(parts_of_jobs.jobs) is distinct from 'array'
    or not parts_of_jobs.jobs @? any (_bound) then
        return query select _lot, parts_of_jobs.jobs, null::integer[];
        return;
    end if;
    select e.slots || '', e.is_settled into _slots, _is_settled
    from jobq_private.current_epoch as e;
    return query
    select p.partition, jsonb_agg(p.job), array_agg(p.n)
    from (
        select j.job, j.n, case
            when j.job ->> 'after' is not null or j.job ->> 'batch_id' is not null
                or not _is_settled and j.job ->> 'idempotency_key' is not null
            then jobq_router.partition_of_new(
                j.job ->> 'kind', j.job ->> 'concurrency_key', j.job ->> 'idempotency_key',
                j.job ->> 'dedup_key', (
                    select array_agg(a.job_id::uuid)
                    from jsonb_array_elements_text(nullif(j.job -> 'after', 'null')) as a (job_id)
                ),
                (j.job ->> 'batch_id')::uuid
            )
            when j.key is null then _lot
            else jobq_router.partition_of_key(_slots, j.key)
        end as partition
        from (
            select e.job, e.n::integer as n, coalesce(
                e.job ->> 'concurrency_key', e.job ->> 'idempotency_key', e.job ->> 'dedup_key'
            ) as key
            from jsonb_array_elements(parts_of_jobs.jobs) with ordinality as e (job, n)
            offset 0 -- evaluate the key once
        ) as j
    ) as p
    group by p.partition;
end
$$;

-- Each partition with its ids, in order; without ids, each partition.
create function jobq_router.parts_of(job_ids uuid[])
returns table (partition integer, ids uuid[])
language sql
as $$
    select i.partition, array_agg(i.job_id order by i.n)
    from (
        select jobq_router.partition_of_id(p.job_id) as partition, p.job_id, p.n
        from unnest(parts_of.job_ids) with ordinality as p (job_id, n)
        where p.job_id is not null
        offset 0
    ) as i
    group by i.partition
    union all
    select s.partition, null
    from jobq_private.shard as s
    where parts_of.job_ids is null and s.removed_at is null
    order by partition
$$;

create function jobq_router.size(list anyarray)
returns integer
language sql
immutable
as $$
    select coalesce(cardinality(list), 0)
$$;

create function jobq_router.size(list jsonb)
returns integer
language sql
immutable
as $$
    select case
        when jsonb_typeof(list) = 'array' then jsonb_array_length(list) when list is not null then 0
    end
$$;

-- ---- shards that do not respond

create function jobq_router.ping(partition integer)
returns integer
language plproxy
as $$
    cluster 'jobq'; run on partition; select 1;
$$;

create function jobq_router.responds(partition integer)
returns boolean
language plpgsql
as $$
begin
    return jobq_router.ping(responds.partition) = 1;
exception when others then
    return false;
end
$$;

-- The first partition that responds; 0 if none does.
create function jobq_router.responding_partition()
returns integer
language sql
as $$
    select coalesce((
        select s.partition
        from (
            select s.partition
            from jobq_private.shard as s
            where s.removed_at is null
            order by s.partition
            offset 0
        ) as s
        where jobq_router.responds(s.partition)
        limit 1
    ), 0)
$$;

-- Whether an error means that a shard did not respond or refused the login.
create function jobq_router.is_unanswered(state text, message text)
returns boolean
language sql
immutable
as $$
    select message ~ '^(PL/Proxy function )?jobq_router\.\w+\(\d+\): ' and (
        state ~ '^(08|57P)'
        or state = 'XX000' and message ~ '\] PQ|REMOTE \(null\)|timeout|Lost result|Unfinished|poll\(\)'
    )
$$;

create function jobq_router.is_away(state text, message text)
returns boolean
language sql
immutable
as $$
    select jobq_router.is_unanswered(state, message)
    and message !~ 'password|authentication|pg_hba|role "'
$$;

-- The partitions that respond, after a warning that names the other shards; null if none does.
create function jobq_router.responding_partitions()
returns integer[]
language plpgsql
as $$
declare
    _present integer[];
    _away text;
begin
    select
        array_agg(s.partition) filter (where s.responds),
        string_agg(s.shard_id::text, ', ') filter (where not s.responds)
    into _present, _away
    from (
        select s.shard_id, s.partition, jobq_router.responds(s.partition)
        from jobq_private.shard as s
        where s.removed_at is null
        order by s.shard_id
        offset 0
    ) as s;
    if _present is not null and _away is not null then
        raise warning 'a shard does not respond: its rows are missing'
        using errcode = 'JQ012', detail = 'shard ' || _away, constraint = 'SHARD_AWAY';
    end if;
    return _present;
end
$$;

create function jobq_router.each_of(partitions integer[])
returns setof integer
language sql
immutable
as $$
    select unnest(partitions)
$$;

-- Raises an error of a shard unchanged. Raises SHARD_AWAY if a shard does not respond, and 28000
-- if it refuses the login.
create function jobq_router.raise_remote(
    state text, message text, detail text, hint text, partition integer
)
returns void
language plpgsql
as $$
declare
    _said constant text := substring(raise_remote.message from 'REMOTE [^:]*: (.*)$');
    _shards text;
begin
    if jobq_router.is_unanswered(raise_remote.state, raise_remote.message) then
        select coalesce(
            'shard ' || string_agg(s.shard_id::text, ', ' order by s.shard_id),
            'a shard was away, and is back'
        ) into _shards
        from jobq_private.shard as s
        where s.removed_at is null
        and (
            s.partition = raise_remote.partition
            or raise_remote.partition is null and not jobq_router.responds(s.partition)
        );
        if not jobq_router.is_away(raise_remote.state, raise_remote.message) then
            raise exception 'a shard refuses the log-in' using
                errcode = '28000', detail = _shards,
                hint = 'use: alter user mapping for ... server jobq options (set ...)';
        end if;
        perform jobq_private.raise_error('SHARD_AWAY', format(
            '%s; keys for which jobq.choose_shard() gives that number, and ids for which jobq_internal.shard_of() does, wait',
            _shards
        ));
    end if;
    raise exception using
        errcode = raise_remote.state,
        message = coalesce(_said, raise_remote.message),
        detail = regexp_replace(raise_remote.detail, '^Remote detail: ', ''),
        hint = regexp_replace(raise_remote.hint, '^Remote hint: ', ''),
        constraint = coalesce((
            select e.code from jobq_private.error as e
            where e.sqlstate = raise_remote.state and e.message = coalesce(_said, raise_remote.message)
            order by e.code
            limit 1
        ), '');
end
$$;

grant execute on all functions in schema jobq_router
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
