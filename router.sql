-- What a router is made of, but for the functions that jobq.list_router_statements() writes on a
-- shard: its map, and where a call goes. For an empty database of PostgreSQL 15 or newer with
-- PL/Proxy, as a superuser; `jobq cluster init` runs both. Running it again keeps the map.

set local check_function_bodies = off;

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

-- Calls are short, and the planner cannot know it: it would compile a batch's statement each time.
do $$
begin
    execute format('alter database %I set jit = off', current_database());
end
$$;

drop schema if exists jobq, jobq_router cascade;
create schema jobq;
create schema jobq_router;
create schema if not exists jobq_private;

-- As on a shard, but that a shard has a partition: its number among the server's options.
create table if not exists jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    partition integer not null,
    constraint shard_pkey primary key (shard_id),
    constraint shard_partition_key unique (partition)
);

create table if not exists jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null,
    constraint shard_epoch_pkey primary key (epoch)
);

create table if not exists jobq_private.setting (key_retention interval not null);

insert into jobq_private.setting (key_retention)
select '30 days'
where not exists (select from jobq_private.setting);

drop view if exists jobq_private.error;

grant usage on schema jobq, jobq_router, jobq_private
to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader;
grant select on all tables in schema jobq_private
to jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader;

-- ---- the map

create function jobq.put_shard(shard_id integer, url text, is_own boolean default false)
returns void
language plpgsql
as $$
declare
    _partition integer;
    _verb text := 'set';
    _address constant text := put_shard.url || ' connect_timeout=5';
begin
    if put_shard.is_own or put_shard.url ~ '://|password=|user=' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a router has url as host=... port=... dbname=..., without a user'
        );
    end if;
    select s.partition into _partition
    from jobq_private.shard as s where s.shard_id = put_shard.shard_id;
    if _partition is null then
        select count(*), 'add' into _partition, _verb from jobq_private.shard;
    end if;
    insert into jobq_private.shard as s (shard_id, url, partition)
    values (put_shard.shard_id, put_shard.url, _partition)
    on conflict on constraint shard_pkey do update set url = excluded.url;
    if _verb = 'set' or _partition > 0 then
        execute format('alter server jobq options (%s p%s %L)', _verb, _partition, _address);
    else
        execute format(
            'create server jobq foreign data wrapper plproxy '
            'options (modular_mapping ''1'', query_timeout ''60'', p0 %L)', _address
        );
        grant usage on foreign server jobq
        to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
    end if;
    perform jobq_router.learn();
end
$$;

create function jobq.put_epoch(
    epoch integer, shard_ids integer[], began_at timestamptz default null
)
returns void
language plpgsql
as $$
begin
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids <> put_epoch.shard_ids
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'an epoch never changes');
    end if;
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at)
    values (put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()))
    on conflict on constraint shard_epoch_pkey do nothing;
    perform jobq_router.learn();
end
$$;

-- For how long keys live, as the shards have it: those of an earlier epoch are found meanwhile.
create function jobq_router.keep_keys(key_retention interval)
returns void
language sql
as $$
    update jobq_private.setting as s set key_retention = keep_keys.key_retention
$$;

-- The epochs whose shards get or got keys that may still live, the newest first.
create or replace view jobq_private.living_epoch as
select e.epoch, e.shard_ids
from jobq_private.shard_epoch as e
left join jobq_private.shard_epoch as newer on newer.epoch = e.epoch + 1
where (
    e.began_at <= now() or e.epoch = 1
) and (
    newer.epoch is null or newer.began_at + (select s.key_retention from jobq_private.setting as s) > now()
)
order by e.epoch desc;

grant select on jobq_private.living_epoch
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

-- ---- where a call goes: the partition, which is the number of a shard among the server's options

-- Writes the map into functions, which every call asks: they read no table. A function asked in
-- vain answers null, as before the first epoch.
create function jobq_router.learn()
returns void
language plpgsql
as $$
declare
    _of_shard text;
    _epoch text := 'null::integer';
    _shards text := 'null::integer[]';
    _by_key text := 'null::integer';
    _each record;
begin
    for _each in
        select
            e.epoch, e.epoch = 1 as is_first, e.began_at,
            array_agg(s.partition order by s.shard_id) as partitions,
            string_agg(
                format('md5(%L || key) || %L', s.shard_id || ':', s.partition), ', '
                order by s.shard_id
            ) as hashes
        from jobq_private.shard_epoch as e
        join jobq_private.shard as s on s.shard_id = any (e.shard_ids)
        group by e.epoch
        order by e.epoch
    loop
        select
            format('case when %1$s then %2$L else %3$s end', n.is_now, _each.epoch, _epoch),
            format('case when %1$s then %2$L::integer[] else %3$s end', n.is_now, _each.partitions, _shards),
            format(
                'case when %1$s then substr(greatest(%2$s collate "C"), 33)::integer else %3$s end',
                n.is_now, _each.hashes, _by_key
            )
        into _epoch, _shards, _by_key
        from (
            select case
                when _each.is_first then 'true' else format('now() >= %L::timestamptz', _each.began_at)
            end as is_now
        ) as n;
    end loop;
    select string_agg(format('when %s then %s', s.shard_id, s.partition), ' ')
    into _of_shard
    from jobq_private.shard as s;

    execute format($sql$
        create or replace function jobq_router.current_epoch() returns integer
        language sql stable as $f$ select %s $f$;
        create or replace function jobq_router.current_partitions() returns integer[]
        language sql stable as $f$ select %s $f$;
        create or replace function jobq_router.by_key(key text) returns integer
        language sql stable as $f$ select %s $f$;
        create or replace function jobq_router.known_partition(shard_id integer) returns integer
        language sql immutable as $f$ select %s $f$;
    $sql$, _epoch, _shards, _by_key, coalesce(format('case shard_id %s end', _of_shard), 'null::integer'));
end
$$;

select jobq_router.learn();

create function jobq_router.partition_of(shard_id integer)
returns integer
language plpgsql
stable
as $$
declare
    _partition constant integer := jobq_router.known_partition(partition_of.shard_id);
begin
    if _partition is null and partition_of.shard_id is not null then
        perform jobq_private.raise_error(
            'SHARD_AWAY', format('shard %s: the router does not know it', partition_of.shard_id)
        );
    end if;
    return _partition;
end
$$;

create function jobq_router.lot()
returns integer
language sql
volatile
as $$
    select (jobq_router.current_partitions())[
        1 + floor(random() * cardinality(jobq_router.current_partitions()))::integer
    ]
$$;

-- What choose_shard() says of a key, in the shards of any epoch.
create function jobq_router.by_key_of(shard_ids integer[], key text)
returns table (partition integer)
language sql
stable
as $$
    select substr(max((md5(s.shard_id || ':' || by_key_of.key) || s.partition) collate "C"), 33)::integer
    from jobq_private.shard as s
    where s.shard_id = any (by_key_of.shard_ids)
$$;

-- A new job goes where its keys say. Written so that a call of it is replaced by its body: most
-- jobs have a key or none, and need no other function.
create function jobq_router.place(
    kind text, concurrency_key text, idempotency_key text, dedup_key text, after uuid[], batch_id uuid
)
returns integer
language sql
volatile
as $$
    select case
        when place.after is not null or place.batch_id is not null
            or place.idempotency_key is not null and jobq_router.current_epoch() <> 1
        then jobq_router.place_bound(
            place.kind, place.concurrency_key, place.idempotency_key, place.dedup_key,
            place.after, place.batch_id
        )
        when coalesce(place.concurrency_key, place.idempotency_key, place.dedup_key) is null
        then jobq_router.lot()
        else jobq_router.by_key(
            coalesce(place.concurrency_key, place.idempotency_key, place.dedup_key)
        )
    end
$$;

-- A job that belongs to others goes where they are; one whose idempotency key is held where an
-- epoch before had it, there.
create function jobq_router.place_bound(
    kind text, concurrency_key text, idempotency_key text, dedup_key text, after uuid[], batch_id uuid
)
returns integer
language plpgsql
volatile
as $$
declare
    _key constant text := coalesce(
        place_bound.concurrency_key, place_bound.idempotency_key, place_bound.dedup_key
    );
    _partition integer;
    _earlier integer;
begin
    if place_bound.batch_id is not null or place_bound.after[1] is not null then
        return jobq_router.partition_of(
            jobq.shard_of(coalesce(place_bound.batch_id, place_bound.after[1]))
        );
    elsif _key is null then
        return jobq_router.lot();
    end if;
    _partition := jobq_router.by_key(_key);
    if place_bound.idempotency_key is null or jobq_router.current_epoch() = 1 then
        return _partition;
    end if;
    for _earlier in
        select k.partition
        from jobq_private.living_epoch as e
        cross join lateral jobq_router.by_key_of(e.shard_ids, _key) as k
        where e.epoch < jobq_router.current_epoch() and k.partition <> _partition
        order by e.epoch desc
    loop
        if jobq_router.find_job(_earlier, place_bound.kind, place_bound.idempotency_key) is not null
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
    cluster 'jobq'; run on partition_; select jobq.find_job(kind, idempotency_key);
$$;

-- A schedule stays where the first epoch had its name.
create function jobq_router.place_schedule(schedule text)
returns integer
language plpgsql
volatile
as $$
begin
    return jobq_router.partition_of(jobq.shard_of(place_schedule.schedule::uuid));
exception when invalid_text_representation then
    return (
        select jobq_router.partition_of(jobq.choose_shard(e.shard_ids, place_schedule.schedule))
        from jobq_private.shard_epoch as e
        where e.epoch = 1
    );
end
$$;

-- ---- batches: the partition of each element, or of all together where that is one

create function jobq_router.together(places integer[])
returns integer[]
language sql
immutable
as $$
    select case
        when places[1] = all (places) then places[:1]
        when cardinality(places) > 0 then places
        else array[jobq_router.lot()]
    end
$$;

create function jobq_router.places_of_job_ids(job_ids uuid[])
returns integer[]
language sql
volatile
as $$
    select jobq_router.together(array(
        select s.partition
        from unnest(places_of_job_ids.job_ids) with ordinality as i (job_id, n)
        left join jobq_private.shard as s on s.shard_id = jobq.shard_of(i.job_id)
        order by i.n
    ))
$$;

create function jobq_router.places_of_failures(failures jsonb)
returns integer[]
language sql
volatile
as $$
    select jobq_router.places_of_job_ids(array(
        select (f.failure ->> 'job_id')::uuid
        from jsonb_array_elements(places_of_failures.failures) with ordinality as f (failure, n)
        order by f.n
    ))
$$;

-- The jobs of each partition as text, in which they travel, and at which places they stood; null
-- where all go to one. Those
-- without a key or a parent go to one together. By its key a job goes where choose_shard() says,
-- here for many at once; while keys of an epoch before live, place() looks for each.
create function jobq_router.parts_of_jobs(jobs jsonb)
returns table (partition integer, part text, places integer[])
language plpgsql
volatile
set enable_sort = off -- so that each part keeps the order of its jobs
as $$
declare
    _bound constant text[] := '{concurrency_key,idempotency_key,dedup_key,after,batch_id}';
    _lot constant integer := jobq_router.lot();
    _is_one_epoch constant boolean := (select count(*) = 1 from jobq_private.living_epoch);
begin
    if jsonb_typeof(parts_of_jobs.jobs) is distinct from 'array' or not exists (
        select from jsonb_array_elements(parts_of_jobs.jobs) as j (job) where j.job ?| _bound
    ) then
        return query select _lot, parts_of_jobs.jobs::text, null::integer[];
        return;
    end if;
    return query
    select p.partition, '[' || string_agg(p.job::text, ',') || ']', array_agg(p.n)
    from (
        select j.job, j.n, case
            when _is_one_epoch and j.key is not null and not j.job ?| '{after,batch_id}'
            then jobq_router.by_key(j.key)
            when j.job ?| _bound
            then jobq_router.place_bound(
                j.job ->> 'kind', j.job ->> 'concurrency_key', j.job ->> 'idempotency_key',
                j.job ->> 'dedup_key', (
                    select array_agg(a.job_id::uuid)
                    from jsonb_array_elements_text(nullif(j.job -> 'after', 'null')) as a (job_id)
                ),
                (j.job ->> 'batch_id')::uuid
            )
            else _lot
        end as partition
        from (
            select e.job, e.n::integer as n, coalesce(
                e.job ->> 'concurrency_key', e.job ->> 'idempotency_key', e.job ->> 'dedup_key'
            ) as key
            from jsonb_array_elements(parts_of_jobs.jobs) with ordinality as e (job, n)
            offset 0 -- the key is looked for once
        ) as j
    ) as p
    group by p.partition;
end
$$;

-- Each partition with its ids, the lower ones first; without ids, each partition.
create function jobq_router.parts_of(job_ids uuid[])
returns table (partition integer, ids uuid[])
language sql
stable
as $$
    select s.partition, array_agg(i.job_id order by i.n) filter (where i.n is not null)
    from jobq_private.shard as s
    left join unnest(parts_of.job_ids) with ordinality as i (job_id, n)
        on s.shard_id = jobq.shard_of(i.job_id)
    where parts_of.job_ids is null or i.n is not null
    group by s.partition
    order by s.partition
$$;

create function jobq_router.elements(list jsonb, count integer)
returns jsonb[]
language sql
immutable
as $$
    select case
        when list is null then array_fill(null::jsonb, array[count])
        else array(
            select e.item from jsonb_array_elements(list) with ordinality as e (item, n) order by e.n
        )
    end
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

create function jobq_router.count_to(count integer)
returns integer[]
language sql
immutable
as $$
    select array(select n from generate_series(1, count) as n)
$$;

-- ---- what goes wrong

create function jobq_router.ping(partition integer)
returns integer
language plproxy
as $$
    cluster 'jobq'; run on partition; select 1;
$$;

create function jobq_router.answers(partition integer)
returns boolean
language plpgsql
as $$
begin
    return jobq_router.ping(answers.partition) = 1;
exception when others then
    return false;
end
$$;

-- A shard that answers, the first of them where all do.
create function jobq_router.anyone()
returns integer
language sql
volatile
as $$
    select s.partition
    from (select s.partition from jobq_private.shard as s order by s.partition offset 0) as s
    where jobq_router.answers(s.partition)
    limit 1
$$;

-- Raises an error of a shard as that raised it, and what PL/Proxy says where none answers as
-- SHARD_AWAY.
create function jobq_router.tell(
    state text, message text, detail text, hint text, partition integer
)
returns void
language plpgsql
as $$
declare
    _said constant text := substring(tell.message from 'REMOTE [^:]*: (.*)$');
begin
    if tell.message ~ '^(PL/Proxy function )?jobq_router\.\w+\(\d+\): ' and (
        tell.state ~ '^(08|57P)'
        or tell.state = 'XX000' and tell.message ~ '\] PQ|REMOTE \(null\)|timeout|Lost result|Unfinished|poll\(\)'
    ) then
        perform jobq_private.raise_error('SHARD_AWAY', format(
            '%s; keys for which jobq.choose_shard() gives that number, and ids for which jobq.shard_of() does, wait',
            coalesce((
                select 'shard ' || string_agg(s.shard_id::text, ', ' order by s.shard_id)
                from jobq_private.shard as s
                where s.partition = tell.partition
                or tell.partition is null and not jobq_router.answers(s.partition)
            ), 'a shard was away, and is back')
        ));
    end if;
    raise exception using
        errcode = tell.state,
        message = coalesce(_said, tell.message),
        detail = regexp_replace(tell.detail, '^Remote detail: ', ''),
        hint = regexp_replace(tell.hint, '^Remote hint: ', ''),
        constraint = coalesce((
            select e.code from jobq_private.error as e
            where e.sqlstate = tell.state and e.message = coalesce(_said, tell.message)
            order by e.code
            limit 1
        ), '');
end
$$;

grant execute on all functions in schema jobq_router
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
