-- What a router is made of, but for the functions that jobq_internal.list_router_statements() writes on a
-- shard: its map, and where a call goes. For an empty database of PostgreSQL 15 or newer with
-- PL/Proxy, as a superuser; `jobq cluster init` runs both. Running it again keeps the map.

set local check_function_bodies = off;

do $$
begin
    if getdatabaseencoding() <> 'UTF8' then
        raise exception 'the database of a router must be encoded in UTF8'
        using detail = 'keys lead where clients have them, by the md5 of their UTF-8';
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

-- Calls are short, and the planner cannot know it: it would compile a batch's statement each time.
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

-- As on a shard, but that a shard has a partition: its number among the server's options.
create table if not exists jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    successor integer,
    removed_at timestamptz,
    partition integer not null, -- that of the successor, if removed
    constraint shard_pkey primary key (shard_id)
);

create table if not exists jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null,
    slots bytea not null, -- the partition of each slot of keys, a byte each
    constraint shard_epoch_pkey primary key (epoch)
);

create table if not exists jobq_private.setting (key_retention interval not null);

insert into jobq_private.setting (key_retention)
select '30 days'
where not exists (select from jobq_private.setting);

drop view if exists jobq_private.error;

grant usage on schema jobq, jobq_internal, jobq_router, jobq_private
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
    if exists (
        select from jobq_private.shard as s
        where s.shard_id = put_shard.shard_id and s.removed_at is not null
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('shard %s was removed; ids contain its number', put_shard.shard_id)
        );
    end if;
    select s.partition into _partition
    from jobq_private.shard as s where s.shard_id = put_shard.shard_id;
    if _partition is null then
        select count(*), 'add' into _partition, _verb
        from jobq_private.shard as s
        where s.removed_at is null;
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

-- As on a shard. Without a removed shard, the partitions are numbered anew.
create function jobq.put_successor(
    shard_id integer, successor integer, is_removed boolean default false
)
returns void
language plpgsql
as $$
declare
    _options text;
begin
    if not exists (
        select from jobq_private.shard as s
        where s.shard_id = put_successor.successor and s.removed_at is null
    ) or not exists (
        select from jobq_private.shard as s
        where s.shard_id = put_successor.shard_id
        and coalesce(s.successor, put_successor.successor) = put_successor.successor
    ) or put_successor.shard_id = put_successor.successor then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'successor must be another shard');
    end if;
    update jobq_private.shard as s
    set successor = put_successor.successor,
        removed_at = coalesce(s.removed_at, case when put_successor.is_removed then now() end)
    where s.shard_id = put_successor.shard_id;
    if put_successor.is_removed then
        update jobq_private.shard as s
        set successor = put_successor.successor
        where s.successor = put_successor.shard_id and s.removed_at is not null;
        update jobq_private.shard as s
        set partition = n.partition
        from (
            select l.shard_id, row_number() over (order by l.partition) - 1 as partition
            from jobq_private.shard as l
            where l.removed_at is null
        ) as n
        where n.shard_id = case when s.removed_at is null then s.shard_id else s.successor end;
        select string_agg(
            case
                when s.url is null then 'drop ' || split_part(o.option, '=', 1)
                else format('set p%s %L', s.partition, s.url || ' connect_timeout=5')
            end, ', '
        )
        into _options
        from pg_foreign_server as f
        cross join lateral unnest(f.srvoptions) as o (option)
        left join jobq_private.shard as s
            on s.removed_at is null and split_part(o.option, '=', 1) = 'p' || s.partition
        where f.srvname = 'jobq' and o.option ~ '^p[0-9]+=';
        execute format('alter server jobq options (%s)', _options);
        update jobq_private.shard_epoch as e set slots = jobq_router.slots_of(e.shard_ids);
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
declare
    _next constant integer := (
        select coalesce(max(e.epoch), 0) + 1 from jobq_private.shard_epoch as e
    );
begin
    if exists (
        select from jobq_private.shard_epoch as e
        where e.epoch = put_epoch.epoch and e.shard_ids <> put_epoch.shard_ids
    ) then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'an epoch never changes');
    elsif put_epoch.epoch not between 1 and _next then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format('epoch must be %s', _next));
    elsif put_epoch.began_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'began_at must be in the years 1 to 9999'
        );
    elsif not put_epoch.shard_ids <@ array(select s.shard_id from jobq_private.shard as s) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'shard_ids must be shards that put_shard has named'
        );
    end if;
    insert into jobq_private.shard_epoch (epoch, shard_ids, began_at, slots)
    values (
        put_epoch.epoch, put_epoch.shard_ids, coalesce(put_epoch.began_at, now()),
        jobq_router.slots_of(put_epoch.shard_ids)
    )
    on conflict on constraint shard_epoch_pkey do nothing;
    perform jobq_router.learn();
end
$$;

-- For how long keys live, as the shards have it: those of an earlier epoch are found meanwhile.
create function jobq_router.keep_keys(key_retention interval)
returns void
language sql
as $$
    update jobq_private.setting as s set key_retention = keep_keys.key_retention;
    select jobq_router.learn();
$$;

-- The epochs whose shards get or got keys that may still live, the newest first.
create or replace view jobq_private.living_epoch as
select e.epoch, e.slots
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

-- The slot of a key, as choose_shard() has it.
create function jobq_router.slot_of(key text)
returns integer
language sql
immutable
as $$
    select ('x' || left(md5(slot_of.key), 4))::"bit"::integer & 16383
$$;

-- The partition of each slot, a byte each, while these shards get new keys: as choose_shard() has it.
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

-- Writes the map into functions, which every call asks: they read no table, and a call of one is
-- replaced by its body. Before the first epoch they answer null.
--   current_epoch       its number
--   current_partitions  those that get new keys
--   by_key              where a key leads
--   is_whole            whether all partitions get new keys
--   is_settled          whether no key of an epoch before lives
--   known_partition     that of a shard
--   next_partition      that to which jobs of a partition move, if any
create function jobq_router.learn()
returns void
language plpgsql
as $$
declare
    _learnt text;
begin
    select string_agg(format(
        'create or replace function jobq_router.%s language sql %s as %L;', f.signature,
        case when f.body ~ 'now\(\)' then 'stable' else 'immutable' end, 'select ' || f.body
    ), ' ')
    into _learnt
    from (
        select
            string_agg(format('when %s then %s', e.is_now, e.epoch), ' ') as epochs,
            string_agg(format('when %s then %L::integer[]', e.is_now, e.partitions), ' ') as partitions,
            string_agg(format('when %s then %L::bytea', e.is_now, e.slots), ' ') as slots,
            string_agg(format('when %s then %L::boolean', e.is_now, e.is_whole), ' ') as are_whole,
            string_agg(format('when %s then %s', e.is_now, e.is_settled), ' ') as are_settled
        from (
            select
                e.epoch, e.slots, p.partitions,
                p.partitions @> array(select s.partition from jobq_private.shard as s) as is_whole,
                case
                    when e.epoch = 1 or e.began_at <= now() then 'true'
                    else format('now() >= %L', e.began_at)
                end as is_now,
                case
                    when e.epoch = 1 or e.began_at + k.key_retention <= now() then 'true'
                    else format('now() >= %L', e.began_at + k.key_retention)
                end as is_settled
            from jobq_private.shard_epoch as e
            cross join jobq_private.setting as k
            cross join lateral (
                select array_agg(s.partition order by s.shard_id) as partitions
                from jobq_private.shard as s
                where s.shard_id = any (e.shard_ids)
            ) as p
            order by e.epoch desc
        ) as e
        where not exists (
            select from jobq_private.shard_epoch as newer
            where newer.epoch > e.epoch and newer.began_at <= now()
        )
    ) as e
    cross join (
        select
            string_agg(format('when %s then %s', s.shard_id, s.partition), ' ') as partitions,
            string_agg(format('when %s then %s', s.partition, n.partition), ' ')
                filter (where s.removed_at is null and n.partition is not null) as successors
        from jobq_private.shard as s
        left join jobq_private.shard as n on n.shard_id = s.successor
    ) as s
    cross join lateral (values
        ('current_epoch() returns integer', coalesce('case ' || e.epochs || ' end', 'null::integer')),
        (
            'current_partitions() returns integer[]',
            coalesce('case ' || e.partitions || ' end', 'null::integer[]')
        ),
        (
            'by_key(key text) returns integer',
            coalesce('get_byte(case ' || e.slots || ' end, jobq_router.slot_of(key))', 'null::integer')
        ),
        ('is_whole() returns boolean', coalesce('case ' || e.are_whole || ' end', 'null::boolean')),
        ('is_settled() returns boolean', coalesce('case ' || e.are_settled || ' end', 'null::boolean')),
        (
            'known_partition(shard_id integer) returns integer',
            coalesce('case shard_id ' || s.partitions || ' end', 'null::integer')
        ),
        (
            'next_partition(partition integer) returns integer',
            coalesce('case partition ' || s.successors || ' end', 'null::integer')
        )
    ) as f (signature, body);
    execute _learnt;
end
$$;

select jobq_router.learn();

-- An id whose number no shard has is nobody's: the first shard says so as well as any.
create function jobq_router.partition_of(shard_id integer)
returns integer
language sql
stable
as $$
    select case
        when partition_of.shard_id is not null
        then coalesce(jobq_router.known_partition(partition_of.shard_id), 0)
    end
$$;

-- The partition of a job: that of its id's shard, unless it has moved to the successor.
create function jobq_router.partition_of_id(job_id uuid)
returns integer
language sql
volatile
as $$
    select jobq_router.follow(
        jobq_router.partition_of(jobq_internal.shard_of(partition_of_id.job_id)), partition_of_id.job_id
    )
$$;

create function jobq_router.follow(partition integer, job_id uuid)
returns integer
language sql
volatile
as $$
    select case
        when jobq_router.next_partition(follow.partition) is null then follow.partition
        when exists (select from jobq_router.list_moved(follow.partition, array[follow.job_id]))
        then jobq_router.next_partition(follow.partition)
        else follow.partition
    end
$$;

create function jobq_router.list_moved(partition_ integer, job_ids uuid[])
returns table (job_id uuid, shard_id integer)
language plproxy
as $$
    cluster 'jobq'; run on partition_; select * from jobq_internal.list_moved(job_ids);
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

-- Where a new job goes that a key alone does not place: one that belongs to others goes where they
-- are; one whose idempotency key is held where an epoch before had it, there.
create function jobq_router.place(
    kind text, concurrency_key text, idempotency_key text, dedup_key text, after uuid[], batch_id uuid
)
returns integer
language plpgsql
volatile
as $$
declare
    _key constant text := coalesce(place.concurrency_key, place.idempotency_key, place.dedup_key);
    _partition integer;
    _earlier integer;
begin
    if place.batch_id is not null or place.after[1] is not null then
        return jobq_router.partition_of_id(coalesce(place.batch_id, place.after[1]));
    elsif _key is null then
        return jobq_router.lot();
    end if;
    _partition := jobq_router.by_key(_key);
    if place.idempotency_key is null or jobq_router.is_settled() then
        return _partition;
    end if;
    for _earlier in
        select k.partition
        from jobq_private.living_epoch as e
        cross join lateral get_byte(e.slots, jobq_router.slot_of(_key)) as k (partition)
        where e.epoch < jobq_router.current_epoch() and k.partition <> _partition
        order by e.epoch desc
    loop
        if jobq_router.find_job(_earlier, place.kind, place.idempotency_key) is not null then
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
    return jobq_router.partition_of_id(place_schedule.schedule::uuid);
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
        select coalesce(jobq_router.partition_of_id(i.job_id), 0)
        from unnest(places_of_job_ids.job_ids) with ordinality as i (job_id, n)
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
-- where all go to one. Those without a key or a parent go to one together; others where place()
-- says, which is asked where a key alone does not tell.
create function jobq_router.parts_of_jobs(jobs jsonb)
returns table (partition integer, part text, places integer[])
language plpgsql
volatile
set enable_sort = off -- so that each part keeps the order of its jobs
as $$
declare
    _bound constant jsonpath[] := '{$[*].idempotency_key,$[*].concurrency_key,$[*].dedup_key,$[*].after,$[*].batch_id}';
    _lot constant integer := jobq_router.lot();
    _is_settled constant boolean := jobq_router.is_settled();
begin
    if jsonb_typeof(parts_of_jobs.jobs) is distinct from 'array'
    or not parts_of_jobs.jobs @? any (_bound) then
        return query select _lot, parts_of_jobs.jobs::text, null::integer[];
        return;
    end if;
    return query
    select p.partition, '[' || string_agg(p.job::text, ',') || ']', array_agg(p.n)
    from (
        select j.job, j.n, case
            when j.job ->> 'after' is not null or j.job ->> 'batch_id' is not null
                or not _is_settled and j.job ->> 'idempotency_key' is not null
            then jobq_router.place(
                j.job ->> 'kind', j.job ->> 'concurrency_key', j.job ->> 'idempotency_key',
                j.job ->> 'dedup_key', (
                    select array_agg(a.job_id::uuid)
                    from jsonb_array_elements_text(nullif(j.job -> 'after', 'null')) as a (job_id)
                ),
                (j.job ->> 'batch_id')::uuid
            )
            when j.key is null then _lot
            else jobq_router.by_key(j.key)
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
volatile
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

-- A shard that answers, the first of them where all do or none does.
create function jobq_router.anyone()
returns integer
language sql
volatile
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
        where jobq_router.answers(s.partition)
        limit 1
    ), 0)
$$;

-- Whether an error says that a shard did not answer, because it is away or refuses the log-in.
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

-- The partitions that answer, after a warning that names the shards that do not; null where none does.
create function jobq_router.present()
returns integer[]
language plpgsql
as $$
declare
    _present integer[];
    _away text;
begin
    select
        array_agg(s.partition) filter (where s.answers),
        string_agg(s.shard_id::text, ', ') filter (where not s.answers)
    into _present, _away
    from (
        select s.shard_id, s.partition, jobq_router.answers(s.partition)
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

-- Raises an error of a shard as that raised it, and what PL/Proxy says where none answers as
-- SHARD_AWAY, or as 28000 where a shard refuses the log-in.
create function jobq_router.tell(
    state text, message text, detail text, hint text, partition integer
)
returns void
language plpgsql
as $$
declare
    _said constant text := substring(tell.message from 'REMOTE [^:]*: (.*)$');
    _shards text;
begin
    if jobq_router.is_unanswered(tell.state, tell.message) then
        select coalesce(
            'shard ' || string_agg(s.shard_id::text, ', ' order by s.shard_id),
            'a shard was away, and is back'
        ) into _shards
        from jobq_private.shard as s
        where s.removed_at is null
        and (
            s.partition = tell.partition
            or tell.partition is null and not jobq_router.answers(s.partition)
        );
        if not jobq_router.is_away(tell.state, tell.message) then
            raise exception 'a shard refuses the log-in' using
                errcode = '28000', detail = _shards,
                hint = 'mend it with: alter user mapping for ... server jobq options (set ...)';
        end if;
        perform jobq_private.raise_error('SHARD_AWAY', format(
            '%s; keys for which jobq.choose_shard() gives that number, and ids for which jobq_internal.shard_of() does, wait',
            _shards
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
