-- Deploy jobq:job to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: end live jobs in a final state and move them into the archive, in one statement. Jobs
-- that leave no trace (keep is 0) are deleted instead. Returns the positions, from 1, of the jobs
-- that moved; null for none.
-- Invariant: the archive's foreign key checks each change. A running job moves only by the attempt
-- that holds its lease; a waiting job not as succeeded, unless by a raw update. Jobs locked by
-- others are waited for, or skipped if skip_locked. Raises: 23503.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb default null,
    skip_locked boolean default false
)
returns bigint[]
language plpgsql
-- Only the primary key can serve the delete, whatever the statistics say, and a merge join locks the
-- jobs in the order of their ids, as every batch does, so that batches cannot deadlock.
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_nestloop = off
set enable_mergejoin = on
as $$
declare
    _final constant integer := array_position('{succeeded,dead,cancelled}', archive_jobs.state);
    _moved bigint[];
    _endings jobq_private.ending[];
begin
    with ended as (
        delete from jobq_private.job as j
        using unnest(job_ids, attempts) with ordinality as s (settled_id, settled_attempt, position)
        where j.job_id = any(job_ids)
        -- Where xmax is neither 0 nor xmin, another transaction may have locked the job.
        and (not skip_locked or j.xmax in ('0', j.xmin) or jobq_private.lock_job(j.ctid))
        and j.job_id = s.settled_id and j.attempt = s.settled_attempt
        and (j.lease_expires_at is not null or archive_jobs.state in ('dead', 'cancelled', j.state))
        returning
            s.position,
            -- Read by the statement that has locked the archive: settled_at() relies on that. A
            -- clock that was put back ends no job before its id, from which get_job() looks for it.
            greatest(clock_timestamp(), j.created_at) as finished_at,
            -- What is not legal goes to the archive, whose foreign key refuses it.
            case when j.keep[_final] = '0' and not j.is_awaited and j.batch_id is null
                then jobq_private.is_legal(
                    coalesce(nullif(j.state, archive_jobs.state), j.previous_state),
                    archive_jobs.state
                )
            end as is_gone,
            j.*
    ),
    stored as (
        insert into jobq_private.job_archive (
            state, previous_state, transition_slot, finished_at, result, prune_at,
            -- columns of jobq_private.job but due_at, lease_expires_at, slot, reported_cost, waits_since:
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at, slot_at, expires_at,
            lease, timeout, schedule_id, attempt, uncounted, max_attempts, expiries, delivery_version,
            priority, is_awaited, region, queue, kind, key_id, concurrency_key, cost, batch_id, worker,
            idempotency_key, dedup_key, dedup, cancel_reason, last_error_code, last_error, last_error_details,
            keep, metadata, progress, payload
            -- end
        )
        select
            archive_jobs.state, coalesce(nullif(g.state, archive_jobs.state), g.previous_state),
            pg_backend_pid() & 1023, g.finished_at,
            nullif(results -> (g.position - 1)::integer, 'null'), g.finished_at + g.keep[_final],
            -- the same of g:
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at, g.cancel_requested_at, g.slot_at,
            g.expires_at, g.lease, g.timeout, g.schedule_id, g.attempt, g.uncounted, g.max_attempts,
            g.expiries, g.delivery_version, g.priority, g.is_awaited, g.region, g.queue, g.kind, g.key_id,
            g.concurrency_key, g.cost, g.batch_id, g.worker, g.idempotency_key, g.dedup_key, g.dedup,
            g.cancel_reason, g.last_error_code, g.last_error, g.last_error_details, g.keep, g.metadata,
            g.progress, g.payload
            -- end
        from ended as g
        where g.is_gone is not true
    )
    select array_agg(g.position), array_agg(row(
            g.job_id, g.attempt, archive_jobs.state, g.queue, g.kind, g.key_id, g.concurrency_key,
            g.slot, g.is_awaited, g.batch_id, coalesce(g.is_gone, false)
        )::jobq_private.ending)
        filter (where num_nonnulls(g.key_id, g.slot, g.batch_id) > 0 or g.is_awaited or g.is_gone)
    into _moved, _endings
    from ended as g;

    if _endings is not null then
        perform jobq_private.follow_endings(_endings);
    end if;
    -- Clients that wait for a job that did not move look at it as well.
    if jobq_private.is_locked('awaiting', 0) then
        perform jobq_private.tell_ended(archive_jobs.job_ids);
    end if;
    return _moved;
end
$$;

-- Purpose: take the idempotency keys of finished jobs that are to be redriven, and return the jobs
-- whose key belongs to another job. Callers pin the planner's settings.
create or replace function jobq_private.bar_redrives(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[]
language plpgsql
as $$
declare
    _keyed uuid[];
    _holders uuid[];
begin
    select array_agg(k.job_id), jobq_private.take_idempotency_keys(
        array_agg(k.job_id), array_agg(k.kind), array_agg(k.idempotency_key)
    )
    into _keyed, _holders
    from (
        select a.job_id, a.kind, a.idempotency_key
        from unnest(bar_redrives.job_ids, bar_redrives.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at
            and a.finished_at between (select min(f) from unnest(finished_ats) as f)
            and (select max(f) from unnest(finished_ats) as f)
        where a.idempotency_key is not null
        order by a.job_id
    ) as k
    having count(*) > 0;
    return array(
        select k.job_id from unnest(_keyed, _holders) as k (job_id, holder)
        where k.job_id <> k.holder
    );
end
$$;

-- Purpose: refuse jobs if more than max_depth jobs would then wait in their queues.
-- Invariant: reads at most max_depth index entries, because only rows are a count that cannot leak:
-- some 10 ms for 100,000. New jobs are already stored, so a deduplicated job adds nothing. Full queues accept
-- slots of schedules. Concurrent callers may exceed the limit by what they add at the same moment.
-- Raises: JQ010.
create or replace function jobq_private.check_queue_depth(
    job_ids uuid[], to_queue text default null
)
returns void
language plpgsql
stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    perform jobq_private.check_problem('QUEUE_FULL', (
        select format('queue %s: max_depth %s, %s more requested', q.queue, q.max_depth, a.adding)
        from (
            select
                coalesce(to_queue, j.queue) as queue, count(*) as adding,
                count(*) filter (where j.state = 'blocked' or j.queue <> to_queue) as unseen
            from jobq_private.job as j
            where j.job_id = any (check_queue_depth.job_ids)
            and j.slot_at is null and j.queue is distinct from to_queue
            group by 1
        ) as a
        join jobq_private.queue as q on q.queue = a.queue and q.max_depth is not null
        where q.max_depth - a.unseen < (
            select count(*)
            from (
                select from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.due_at is not null
                union all
                select from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.key_id is not null
                limit q.max_depth + 1
            ) as present
        )
        limit 1
    ));
end
$$;

-- Purpose: drop one partition of the history that is past its retention; return how many were
-- dropped.
-- Invariant: one per call, so that its locks end with the transaction. Jobs that others still need
-- stay, in a partition of their own; with more than 10,000 of them the day stays complete. Waits
-- at most 100 ms for a lock.
create or replace function jobq_private.drop_partitions()
returns bigint
language plpgsql
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _most_kept constant integer := 10000;
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _parent text;
    _partition text;
    _day date;
    _kept uuid[];
    _is_whole boolean;
begin
    for _parent, _partition, _day in
        select p.relname, c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        join pg_catalog.pg_class as p on p.oid = i.inhparent
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        and to_date(right(c.relname, 8), 'YYYYMMDD') < _oldest
        order by 3, 2
    loop
        _kept := '{}';
        if _parent = 'job_archive' then
            _kept := array(
                select n.job_id
                from jobq_private.on_forget(_day, _day + 1, null, _most_kept + 1) as n
            );
            execute format(
                'select count(*) <= $1 from (select from jobq_private.%I limit $1 + 1) as p',
                _partition
            ) into _is_whole using cardinality(_kept);
            continue when _kept <> '{}' and (_is_whole or cardinality(_kept) > _most_kept);
        end if;
        begin
            if _kept <> '{}' then
                -- Nobody redrives or prunes a job of the day while it is copied.
                execute format(
                    'lock table jobq_private.%I in share row exclusive mode', _partition
                );
                execute format(
                    'create table jobq_private.kept (like jobq_private.%I'
                    ' including defaults including constraints)', _parent
                );
                execute format(
                    'insert into jobq_private.kept select p.* from jobq_private.%I as p'
                    ' where p.job_id = any($1)', _partition
                ) using _kept;
            end if;
            execute format('drop table jobq_private.%I', _partition);
            if _kept <> '{}' then
                execute format('alter table jobq_private.kept rename to %I', _partition);
                execute format(
                    'alter table jobq_private.%I attach partition jobq_private.%I'
                    ' for values from (%L) to (%L)', _parent, _partition, _day, _day + 1
                );
            end if;
            return 1;
        exception
            when lock_not_available then
                raise notice using
                    message = 'a history table is in use; the next call removes expired jobs';
        end;
    end loop;
    return 0;
end
$$;

-- Purpose: end at most max_rows waiting jobs that have expired, even if no worker would claim
-- them; return how many. Locked jobs are left to the next call.
create or replace function jobq_private.expire_jobs(max_rows integer)
returns bigint
language sql
set jit = off
set enable_seqscan = off
as $$
    with expired as (
        update jobq_private.job as j
        set
            state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
            last_error = 'it did not start before ' || j.expires_at
        where j.job_id = any(array(
            select e.job_id
            from jobq_private.job as e
            where e.expires_at < clock_timestamp() and e.state in ('queued', 'retrying', 'blocked')
            order by e.expires_at
            limit expire_jobs.max_rows
            for update skip locked
        ))
        returning j.job_id
    )
    select count(*) from expired
$$;

-- Purpose: delete what belongs to jobs that leave no trace, and call the hook on_end().
-- Invariant: the caller has locked or deleted the jobs.
create or replace function jobq_private.follow_endings(endings jobq_private.ending[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _gone uuid[];
    _since timestamptz;
begin
    -- Nothing of a job is older than its id, so that the partitions of earlier days are passed over.
    select array_agg(e.job_id), jobq_private.id_time((array_agg(e.job_id order by e.job_id))[1])
    into _gone, _since
    from unnest(endings) as e
    where e.is_gone;
    if _gone is not null then
        delete from jobq_private.attempt as a
        where a.job_id = any(_gone) and a.finished_at >= _since - interval '1 day';
        delete from jobq_private.job_log as l
        where l.job_id = any(_gone) and l.logged_at >= _since - interval '1 day';
    end if;
    perform jobq_private.on_end(endings);
end
$$;

-- Purpose: whether a JSON value holds a number beyond the range of a double, or a zero with more
-- than 400 decimals: jsonb stores 1e131071 in nine characters, but readers of JSON refuse it, and
-- as text it has 131,073.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean
language sql
immutable
as $$
    select exists (
        select from jsonb_array_elements(jsonb_path_query_array(
            value,
            'strict $.** ? (@ > -2.5e-324 && @ < 2.5e-324 || @ >= 1.8e308 || @ <= -1.8e308)'
        )) as n (number)
        where n.number <> '0' or scale(n.number::numeric) > 400
    )
$$;

-- Purpose: the creation time in a UUID of version 7, to the millisecond. No job finishes before
-- it, so lookups by id skip older partitions.
create or replace function jobq_private.id_time(id uuid)
returns timestamptz
language sql
immutable
strict
as $$
    select to_timestamp(
        ('x0000' || translate(left(id::text, 13), '-', ''))::bit(64)::bigint / 1000.0
    )
$$;

-- Purpose: insert jobs prepared by store_jobs(), wake their queues, and return the ids of those
-- whose dedup key was free. Raises: JQ010.
create or replace function jobq_private.insert_jobs(jobs jobq_private.new_job[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _stored uuid[];
begin
    if cardinality(jobs) = 0 then
        return '{}'::uuid[];
    end if;
    with stored as (
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease,
            idempotency_key, dedup_key, dedup, metadata, schedule_id, slot_at,
            delivery_version, concurrency_key, key_id, expires_at, keep, state, batch_id,
            is_awaited, cost
        )
        select
            n.job_id, n.kind, n.payload, n.queue, n.run_at, n.priority, n.max_attempts,
            n.timeout, n.lease, n.idempotency_key, n.dedup_key,
            case when n.dedup in ('skip', 'replace', 'debounce') then n.dedup end, n.metadata,
            n.schedule_id, n.slot_at, n.delivery_version, n.concurrency_key, n.key_id,
            n.expires_at, n.keep,
            case when num_nonnulls(n.callback_of, n.after) = 0 then 'queued' else 'blocked' end,
            n.batch_id, n.is_awaited, n.cost
        from unnest(insert_jobs.jobs) as n
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning j.job_id
    )
    select array(select s.job_id from stored as s) into _stored;
    if exists (select from unnest(insert_jobs.jobs) as n where n.max_depth is not null) then
        perform jobq_private.check_queue_depth(_stored);
    end if;
    perform jobq_private.wake(array(
        select distinct n.queue
        from unnest(insert_jobs.jobs) as n
        where n.job_id in (select s from unnest(_stored) as s)
    ));
    return _stored;
end
$$;

-- Purpose: which option of a new job is out of range, or null.
create or replace function jobq_private.invalid_option(job jobq_private.new_job)
returns text
language plpgsql
stable
as $$
begin
    return case
        when job.priority not between -32768 and 32767
        then 'priority must be from -32768 to 32767'
        when job.max_attempts not between 1 and 10000
        then 'max_attempts must be from 1 to 10000'
        when job.timeout not between '1 ms' and '365 days'
        then 'timeout must be from 1 ms to 365 days'
        when job.run_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
        then 'run_at must be in the years 1 to 9999'
        when job.expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC'
            or job.expires_at <= coalesce(job.run_at, now())
        then 'expires_at must be after run_at, in the years 1 to 9999'
        when length(job.idempotency_key) not between 1 and 512
        then 'idempotency_key must have 1 to 512 characters'
        when length(job.dedup_key) not between 1 and 512
        then 'dedup_key must have 1 to 512 characters'
        when job.dedup not in ('skip', 'enqueue', 'replace', 'debounce', 'throttle')
        then 'dedup must be skip, enqueue, replace, debounce or throttle'
        when job.dedup = 'replace' and job.dedup_key is null
        then 'dedup replace requires a dedup_key'
        when job.after_failure not in ('cancel', 'wait', 'run')
        then 'after_failure must be cancel, wait or run'
        when octet_length(job.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when not job.cost between 0 and 1000000000000
        then 'cost must be a number from 0 to 1000000000000'
        when jsonb_typeof(job.metadata) <> 'object'
        then 'metadata must be a JSON object'
    end;
end
$$;

-- Purpose: whether an idempotency key can pass to another job: its retention is over and its job
-- not live, or the job has failed and its kind allows reuse.
create or replace function jobq_private.is_key_free(
    kind text, job_id uuid, created_at timestamptz
)
returns boolean
language plpgsql
stable
as $$
begin
    if created_at < now() - (select g.key_retention from jobq_private.setting as g) then
        return not exists (
            select from jobq_private.job as j where j.job_id = is_key_free.job_id
        );
    end if;
    return exists (
        select from jobq_private.job_archive as a
        where a.job_id = is_key_free.job_id
        and a.finished_at >= jobq_private.id_time(is_key_free.job_id) - interval '1 day'
        and a.state in ('dead', 'cancelled')
    )
    and (select s.reuse_key_after_failure from jobq_private.settings_for(kind, null) as s);
end
$$;

-- Purpose: whether a job may change from one state to another.
create or replace function jobq_private.is_legal(from_state text, to_state text)
returns boolean
language sql
stable
as $$
    select exists (
        select from jobq_private.transition as t
        where t.from_state = is_legal.from_state and t.to_state = is_legal.to_state
    )
$$;

-- Purpose: whether a JSON value is too short to be too deep or too large, or to hold a number
-- beyond the range of a double.
-- Invariant: compares the stored size first: a few bytes can be megabytes of text. Not for a plan
-- in which the value is a constant, since the planner would make that text. Inlined, so no SET clause.
create or replace function jobq_private.is_small(value jsonb, max_depth integer)
returns boolean
language sql
stable
as $$
    select (
        pg_catalog.pg_column_size(value) <= 600
        and pg_catalog.octet_length(value::text) <= least(308, 2 * max_depth)
    ) is not false
$$;

-- Purpose: the paths in the declaration of a key: one, or several as the rows of an array, in which
-- nulls fill up shorter ones.
create or replace function jobq_private.key_paths(paths text[])
returns table (ordinal integer, path text[])
language sql
immutable
as $$
    select n, array(select m from unnest(paths[n:n]) as m where m is not null)
    from generate_subscripts(paths, 1) as n
    where array_ndims(paths) = 2
    union all
    select 1, paths
    where paths is not null and array_ndims(paths) is distinct from 2
$$;

-- Purpose: lock a job, and return true unless another transaction has locked or changed it.
create or replace function jobq_private.lock_job(job tid)
returns boolean
language sql
as $$
    select true from jobq_private.job as j where j.ctid = lock_job.job for update skip locked
$$;

-- Purpose: create a history table's partition of one day (UTC), and move rows of that day there
-- from the default partition.
-- Invariant: locks the parent first, so that completions wait there and do not fail on their way
-- to the default partition. Waits at most 100 ms for a lock.
-- Raises: 55P03 if the lock is not available.
create or replace function jobq_private.make_partition(relation text, day date)
returns boolean
language plpgsql
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _column constant text :=
        case relation when 'job_log' then 'logged_at' else 'finished_at' end;
    _name constant text := format('%s_%s', relation, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('jobq_private.' || _name) is not null then
        return false;
    end if;
    execute format(
        'lock table only jobq_private.%I in share row exclusive mode', relation
    );
    execute format(
        'lock table jobq_private.%I in access exclusive mode', relation || '_default'
    );
    execute format(
        'create table jobq_private.%I (like jobq_private.%I'
        ' including defaults including constraints)', _name, relation
    );
    execute format(
        'with moved as (delete from jobq_private.%1$I as d'
        ' where d.%2$I >= %3$L and d.%2$I < %4$L returning d.*)'
        ' insert into jobq_private.%5$I select m.* from moved as m',
        relation || '_default', _column, day, day + 1, _name
    );
    execute format(
        'alter table jobq_private.%I attach partition jobq_private.%I'
        ' for values from (%L) to (%L)', relation, _name, day, day + 1
    );
    return true;
end
$$;

-- Purpose: create partitions for today and the next week, for the first day without them; return
-- how many.
-- Invariant: one day per call, the archive last, because completions wait for its lock until the
-- commit.
create or replace function jobq_private.make_partitions()
returns bigint
language plpgsql
set timezone = 'UTC'
as $$
declare
    _relation text;
    _day date;
    _first date;
    _made bigint := 0;
begin
    for _day, _relation in
        select d.day, d.relation
        from (
            select now()::date + n.days, r.relation
            from generate_series(0, 7) as n (days)
            cross join unnest(array['job_archive', 'attempt', 'job_log']) as r (relation)
            union
            select a.finished_at::date, 'job_archive' from jobq_private.job_archive_default as a
            union
            select a.finished_at::date, 'attempt' from jobq_private.attempt_default as a
            union
            select l.logged_at::date, 'job_log' from jobq_private.job_log_default as l
        ) as d (day, relation)
        order by d.day, d.relation = 'job_archive'
    loop
        exit when _day > _first;
        if jobq_private.make_partition(_relation, _day) then
            _first := _day;
            _made := _made + 1;
        end if;
    end loop;
    return _made;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; the next call creates its partitions';
        return 0;
end
$$;

-- Purpose: a UUID of version 7, ordered by time also within a session; its tenth byte is the
-- number of this database in its cluster.
-- Invariant: before PostgreSQL 18, 12 bits of microseconds follow the milliseconds (RFC 9562,
-- section 6.2, method 3). Inlined, so no SET clause.
-- creates: function jobq_private.new_id
do $do$
begin
    if current_setting('server_version_num')::integer >= 180000 then
        create or replace function jobq_private.new_id(shard_id integer)
        returns uuid
        language sql
        parallel safe
        as $$
        select pg_catalog.encode(
            pg_catalog.set_byte(
                pg_catalog.uuid_send(pg_catalog.uuidv7()), 9, new_id.shard_id
            ),
            'hex'
        )::uuid
        $$;
    else
        create or replace function jobq_private.new_id(shard_id integer)
        returns uuid
        language sql
        parallel safe
        as $$
        select pg_catalog.encode(
            pg_catalog.substring(pg_catalog.int8send(t.us / 1000), 3)
            || pg_catalog.substring(
                pg_catalog.int4send((28672 + (t.us % 1000) * 4096 / 1000)::integer), 3
            )
            || pg_catalog.set_byte(
                pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
                1, new_id.shard_id
            ),
            'hex'
        )::uuid
        from (
            select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as us
        ) as t
        $$;
    end if;
end
$do$;

-- Purpose: why a new job is invalid by itself or under its settings: the error's code and detail,
-- or null. Reads no table. Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text[]
language plpgsql
stable
as $$
declare
    _invalid text;
    _problem text[];
begin
    if job.kind is null then
        return array['NULL_ARGUMENT', format('job %s: kind', job.ordinal)];
    end if;
    job.dedup_key := coalesce(job.dedup_key, case when settings.dedup_key is not null
        then jobq_private.payload_key(job.payload, settings.dedup_key) end);
    _invalid := case
        when length(job.kind) not between 1 and 128 then 'kind must have 1 to 128 characters'
        when length(job.queue) not between 1 and 128 or right(job.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        -- Most jobs have none of these options. PostgreSQL makes an expression ready as a whole.
        when num_nonnulls(
            job.run_at, job.priority, job.max_attempts, job.timeout, job.metadata,
            job.idempotency_key, job.dedup_key, job.dedup, job.concurrency_key, job.expires_at,
            job.after_failure, job.cost
        ) > 0 then jobq_private.invalid_option(job)
    end;
    if _invalid is not null then
        _problem := array['INVALID_ARGUMENT', _invalid];
    elsif job.metadata is not null
        or not jobq_private.is_small(job.payload, settings.max_payload_depth)
    then
        _problem := coalesce(
            jobq_private.value_problem(
                job.payload, settings.max_payload_bytes, settings.max_payload_depth
            ),
            jobq_private.value_problem(
                job.metadata, settings.max_payload_bytes, settings.max_payload_depth,
                coalesce(octet_length(job.payload::text), 0)
            )
        );
    end if;
    if _problem is null and num_nonnulls(
        settings.payload_schema, settings.json_schema, settings.concurrency_key, settings.cost
    ) > 0 then
        _invalid := jobq_private.payload_problem(job, settings);
        _problem := case when _invalid is not null then array['PAYLOAD_INVALID', _invalid] end;
    end if;
    return case when _problem is not null then
        array[_problem[1], format('job %s: %s', job.ordinal, _problem[2])]
    end;
end
$$;

-- Purpose: hook, called when attempts and jobs end, or jobs are deleted, with those that features
-- may have to follow.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void
language plpgsql
as $$
begin
end
$$;

-- Purpose: hook: which finished jobs others still need, of those that finished between two
-- moments, or of job_ids; at most max_jobs. needed_until is infinity if as long as the retention.
create or replace function jobq_private.on_forget(
    first timestamptz, last timestamptz, job_ids uuid[], max_jobs integer
)
returns table (job_id uuid, needed_until timestamptz)
language sql
stable
as $$
    select null::uuid, null::timestamptz where false
$$;

-- Purpose: hook, called when jobs have been redriven, or moved to another time.
create or replace function jobq_private.on_move(job_ids uuid[])
returns void
language plpgsql
as $$
begin
end
$$;

-- Purpose: hook, called when jobs are about to be redriven. Returns those that must wait for other
-- jobs again.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[]
language sql
as $$
    select '{}'::uuid[]
$$;

-- Purpose: hook, called before a job starts that no claim has found (claimed by its id, or started by
-- raw SQL), and before a delivery. Returns the job, with its slot and claimed_at where they are
-- decided; null if it must not start.
create or replace function jobq_private.on_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job
language plpgsql
stable
as $$
begin
    return job;
end
$$;

-- Purpose: hook, called when jobs are stored. Returns the ids of those that were stored. The core
-- refuses jobs that use features. Raises: 22023, JQ010.
create or replace function jobq_private.on_store(jobs jobq_private.new_job[])
returns uuid[]
language plpgsql
as $$
begin
    perform jobq_private.check_argument((
        select 'after, batch_id and concurrency_key require the features of jobq'
        from unnest(on_store.jobs) as j
        where num_nonnulls(j.after, j.batch_id, j.callback_of, j.concurrency_key) > 0
        limit 1
    ));
    return jobq_private.insert_jobs(on_store.jobs);
end
$$;

-- Purpose: the dedup key that a payload has at these paths; null if nothing is there. The empty path
-- means the whole payload. A key that is too long is replaced by its hash.
create or replace function jobq_private.payload_key(payload jsonb, paths text[])
returns text
language plpgsql
stable
as $$
declare
    _key text;
begin
    select nullif(case
        when array_ndims(paths) = 2
        then case when count(v.value) > 0 then jsonb_agg(v.value order by p.ordinal)::text end
        else min(payload #>> p.path)
    end, '')
    into _key
    from jobq_private.key_paths(paths) as p
    cross join lateral (select nullif(payload #> p.path, 'null')) as v (value);
    return case
        when length(_key) > 512 then 'sha256:' || encode(sha256(convert_to(_key, 'UTF8')), 'hex')
        else _key
    end;
end
$$;

-- Purpose: why the payload of a new job does not fit the declaration of its kind, or null. A path
-- that names nothing, or null, means no key, or a cost of 1.
create or replace function jobq_private.payload_problem(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text
language plpgsql
stable
as $$
declare
    _payload constant jsonb := coalesce(job.payload, '{}');
    _key constant jsonb := _payload #> settings.concurrency_key;
    _cost constant jsonb := _payload #> settings.cost;
    _path constant text := '/' || array_to_string(settings.concurrency_key, '/');
begin
    return coalesce(
        case
            when settings.payload_schema is not null then jobq_private.schema_violation(
                settings.payload_schema, _payload, 'payload'
            )
            when settings.json_schema is not null then jobq_private.json_schema_violation(
                settings.json_schema, _payload
            )
        end,
        case
            when job.concurrency_key is not null then null
            when jsonb_typeof(_key) in ('object', 'array')
            then format(
                '%s is an %s: it cannot be a concurrency key', _path, jsonb_typeof(_key)
            )
            when octet_length(_key #>> '{}') not between 1 and 1024
            then format('%s: a concurrency key must have 1 to 1024 bytes', _path)
        end,
        case
            when job.cost is not null or jsonb_typeof(_cost) = 'null' then null
            when jsonb_typeof(_cost) <> 'number'
                or _cost::numeric not between 0 and 1000000000000
            then format(
                '/%s: a cost must be a number from 0 to 1000000000000',
                array_to_string(settings.cost, '/')
            )
        end
    );
end
$$;

-- Purpose: delete at most max_rows finished jobs that their kind keeps for less than the global
-- retention; return how many.
-- Invariant: a job that others need is postponed. Locked jobs are left to the next call.
-- Idempotency keys have their own retention.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint
language plpgsql
set jit = off
set enable_seqscan = off
as $$
declare
    _due uuid[];
    _first timestamptz;
    _last timestamptz;
    _gone jobq_private.ending[];
begin
    select array_agg(d.job_id), min(d.finished_at), max(d.finished_at) into _due, _first, _last
    from (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.prune_at < now()
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ) as d;
    if _due is null then
        return 0;
    end if;
    with needed as materialized (
        select n.* from jobq_private.on_forget(_first, _last, _due, cardinality(_due)) as n
    ),
    put_off as (
        update jobq_private.job_archive as a
        set prune_at = nullif(greatest(n.needed_until, now() + interval '1 s'), 'infinity')
        from needed as n
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id = n.job_id
    ),
    gone as (
        delete from jobq_private.job_archive as a
        where a.job_id = any(_due) and a.finished_at between _first and _last
        and a.job_id not in (select n.job_id from needed as n)
        returning a.job_id
    )
    select array_agg(row(
        g.job_id, null, null, null, null, null, null, null, null, null, true
    )::jobq_private.ending) into _gone
    from gone as g;
    perform jobq_private.follow_endings(coalesce(_gone, '{}'));
    return coalesce(cardinality(_gone), 0);
end
$$;

-- Purpose: give a job that has not begun the payload of a later call, and postpone it by
-- dedup_period or to the call's run_at, at most by dedup_max_wait in all. False if it has begun or
-- ended meanwhile.
-- Never: ILLEGAL_STATE.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns boolean
language plpgsql
as $$
begin
    update jobq_private.job as j
    set
        payload = job.payload,
        run_at = least(job.run_at, j.created_at + job.dedup_max_wait)
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0;
    if not found then
        return false;
    end if;
    perform jobq_private.on_move(array[put_off.job_id]);
    perform jobq_private.wake(array[job.queue]);
    return true;
end
$$;

-- Purpose: read records of one type, of which sample is a null, from a JSON array with this name.
-- Invariant: refuses unknown members, so that no misspelt option is ignored, and null payloads,
-- which would read as missing. Raises: 22004, 22023.
create or replace function jobq_private.read_records(
    sample anyelement, name text, documents jsonb, known text[]
)
returns anyarray
language plpgsql
stable
set plan_cache_mode = force_generic_plan
as $$
declare
    _each constant text := rtrim(name, 's') || ' %s: ';
    _ordinal bigint;
    _member text;
    _value jsonb;
begin
    perform jobq_private.check_given(name, num_nulls(documents));
    perform jobq_private.check_argument(case when jsonb_typeof(documents) <> 'array'
        then name || ' must be a JSON array' end);
    perform jobq_private.check_argument((
        select format(_each, e.n) || case
            when e.item @> '{"payload": null}' then 'payload must not be null; the default is {}'
            else format('must be an object with members among %s', known)
        end
        from jsonb_array_elements(documents) with ordinality as e (item, n)
        where jsonb_typeof(e.item) <> 'object' or e.item - known <> '{}'
        or e.item @> '{"payload": null}'
        limit 1
    ));
    begin
        return array(
            select jsonb_populate_record(sample, e.item || jsonb_build_object('ordinal', e.n))
            from jsonb_array_elements(documents) with ordinality as e (item, n)
        );
    exception
        when data_exception then
            null;
    end;
    -- Which member it is takes a subtransaction for each.
    for _ordinal, _member, _value in
        select e.n, m.key, m.value
        from jsonb_array_elements(documents) with ordinality as e (item, n)
        cross join lateral jsonb_each(e.item) as m
        where m.key not in ('payload', 'metadata', 'details')
        order by e.n, m.key
    loop
        begin
            perform jsonb_populate_record(sample, jsonb_build_object(_member, _value));
        exception
            when data_exception then
                perform jobq_private.check_argument(
                    format(_each || '%s: %s', _ordinal, _member, sqlerrm)
                );
        end;
    end loop;
    return null;
end
$$;

-- Purpose: return dead or cancelled jobs, which the caller has locked, to the live ones: blocked
-- if they must wait again. A job whose idempotency key or dedup key belongs to another job stays.
-- Invariant: the attempt keeps counting, as a fencing token must; failed attempts no longer count
-- against max_attempts, and the job does not expire again. It counts as awaited.
create or replace function jobq_private.redrive_jobs(
    job_ids uuid[], finished_ats timestamptz[], latest boolean default false,
    target text default 'queued'
)
returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    _of_parents constant text[] := '{PARENT_FAILED,PARENT_GONE}'::text[];
    _first constant timestamptz := (select min(f) from unnest(finished_ats) as f);
    _last constant timestamptz := (select max(f) from unnest(finished_ats) as f);
    _barred constant uuid[] := jobq_private.bar_redrives(job_ids, finished_ats);
    _free constant uuid[] := array(
        select i.job_id from unnest(redrive_jobs.job_ids) as i (job_id)
        where i.job_id not in (select b from unnest(_barred) as b)
    );
    _waiting constant uuid[] := jobq_private.on_redrive(_free);
    _back uuid[];
    _queues text[];
begin
    with back as (
        insert into jobq_private.job (
            run_at, uncounted, state, previous_state, is_awaited, waits_since, transition_slot,
            delivery_version, last_error_code, last_error,
            -- columns of jobq_private.job but due_at, expires_at, expiries, claimed_at, heartbeat_at,
            -- lease_expires_at, cancel_requested_at, cancel_reason, worker, slot, reported_cost, progress:
            job_id, created_at, slot_at, lease, timeout, schedule_id, attempt, max_attempts, priority, region,
            queue, kind, key_id, concurrency_key, cost, batch_id, idempotency_key, dedup_key, dedup,
            last_error_details, keep, metadata, payload
            -- end
        )
        select
            now(), a.attempt,
            case when a.job_id in (select unnest(_waiting)) then 'blocked' else target end, a.state, true, clock_timestamp(), pg_backend_pid() & 1023,
            case
                when not redrive_jobs.latest then a.delivery_version
                else (select k.delivery_version from jobq_private.kind as k where k.kind = a.kind)
            end,
            case when a.last_error_code <> all(_of_parents) then a.last_error_code end,
            case when a.last_error_code <> all(_of_parents) then a.last_error end,
            -- the same of a:
            a.job_id, a.created_at, a.slot_at, a.lease, a.timeout, a.schedule_id, a.attempt, a.max_attempts,
            a.priority, a.region, a.queue, a.kind, a.key_id, a.concurrency_key, a.cost, a.batch_id,
            a.idempotency_key, a.dedup_key, a.dedup, a.last_error_details, a.keep, a.metadata, a.payload
            -- end
        from unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at and a.finished_at between _first and _last
        where (a.state in ('dead', 'cancelled')) is true
        and a.job_id not in (select b from unnest(_barred) as b)
        order by a.kind, a.dedup_key, a.job_id
        on conflict (kind, dedup_key, (
            case when dedup is null or (dedup = 'debounce' and attempt > 0) then job_id end
        ))
        where dedup_key is not null do nothing
        returning job_id, queue
    )
    select array_agg(b.job_id), array_agg(distinct b.queue order by b.queue)
    into _back, _queues
    from back as b;

    delete from jobq_private.job_archive as a
    using unnest(redrive_jobs.job_ids, redrive_jobs.finished_ats) as c (job_id, finished_at)
    where a.job_id = any(redrive_jobs.job_ids) and a.job_id = c.job_id
    and a.finished_at = c.finished_at and a.finished_at between _first and _last
    and a.job_id in (select b from unnest(_back) as b);
    perform jobq_private.on_move(_free);
    if _back is null then
        return;
    end if;
    insert into jobq_private.audit (action, subject)
    select 'redrive', b.job_id::text from unnest(_back) as b (job_id);
    perform jobq_private.wake(_queues);
    return query select b.job_id from unnest(_back) as b (job_id);
end
$$;

-- Purpose: raise the error for an id that names no job.
-- Invariant: replaced by sql/wiring/refuse_missing.sql in a full installation. Raises: JQ001.
create or replace function jobq_private.refuse_missing(job_id uuid)
returns void
language plpgsql
stable
as $$
begin
    perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', job_id));
end
$$;

-- Purpose: All jobs, live and archived. Inserting enqueues; updating state changes the state. FOR
-- UPDATE and FOR SHARE are refused (0A000, "nullable side of an outer join"): use claim(), or
-- claim_job() by id.
-- Invariant: inserts and updates call the functions with the same effect; see
-- job_insert and job_update. FOR UPDATE would silently lock nothing below a UNION. The
-- outer join, which PostgreSQL removes from every other plan, makes it fail (0A000);
-- use claim() to take jobs. attempts has the attempts that count against max_attempts.
-- Column attempts: attempts that count against max_attempts.
-- Column result: the return value of the succeeded attempt.
-- Column worker: the current or last worker.
-- Column updated_at: when its state last changed.
-- Column expires_at: no attempt starts after this time; null means never.
-- Column cost: amount taken from rates and budgets, without reported costs.
-- Column schedule_id: the schedule version that created it, if any.
create or replace view jobq.job as
select u.*
from (
    select
        j.job_id, j.kind, j.queue, j.state, j.previous_state, j.payload,
        null::jsonb as result,
        j.run_at::timestamptz, j.priority, j.attempt, j.attempt - j.uncounted as attempts, j.max_attempts,
        j.timeout, j.lease, j.worker, j.claimed_at, j.heartbeat_at, j.lease_expires_at,
        j.cancel_requested_at, j.cancel_reason, j.idempotency_key, j.dedup_key,
        j.concurrency_key,
        j.last_error_code, j.last_error::text as last_error, j.metadata, j.progress,
        j.schedule_id, j.slot_at, j.region, j.created_at, null::timestamptz as finished_at,
        j.delivery_version, j.expires_at, j.batch_id, coalesce(j.cost, 1)::numeric as cost,
        case
            when j.lease_expires_at is not null then j.claimed_at
            else coalesce(j.waits_since, j.created_at)
        end as updated_at
    from jobq_private.job as j
    union all
    select
        a.job_id, a.kind, a.queue, a.state, a.previous_state, a.payload, a.result,
        a.run_at::timestamptz, a.priority, a.attempt, a.attempt - a.uncounted as attempts, a.max_attempts,
        a.timeout, a.lease, a.worker, a.claimed_at, a.heartbeat_at, null,
        a.cancel_requested_at, a.cancel_reason, a.idempotency_key, a.dedup_key,
        a.concurrency_key,
        a.last_error_code, a.last_error::text, a.metadata, a.progress, a.schedule_id, a.slot_at,
        a.region, a.created_at, a.finished_at, a.delivery_version,
        a.expires_at, a.batch_id, coalesce(a.cost, 1)::numeric, a.finished_at
    from jobq_private.job_archive as a
) as u
left join jobq_private.kind as k on k.kind = u.kind;

grant select on jobq.job to jobq_reader;
grant select, update on jobq.job to jobq_operator;
grant select, insert on jobq.job to jobq_producer;

comment on view jobq.job is 'All jobs, live and archived. Inserting enqueues; updating state changes the state. FOR UPDATE and FOR SHARE are refused (0A000, "nullable side of an outer join"): use claim(), or claim_job() by id.';

-- Purpose: raise the reason why a job could not be redriven: another job has its idempotency or
-- dedup key. Returns if there is none, for example because another session has redriven it.
-- Raises: JQ004.
create or replace function jobq_private.refuse_redrive(job jobq.job)
returns void
language plpgsql
stable
as $$
begin
    perform jobq_private.check_problem('IDEMPOTENCY_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, idempotency_key %s', k.job_id, k.kind, k.idempotency_key
        )
        from jobq_private.idempotency_key as k
        where k.kind = job.kind
        and k.idempotency_key = job.idempotency_key
        and k.job_id <> job.job_id
    ));
    perform jobq_private.check_problem('DEDUP_CONFLICT', (
        select format(
            'held by job_id %s: kind %s, dedup_key %s', j.job_id, j.kind, j.dedup_key
        )
        from jobq_private.job as j
        where j.kind = job.kind
        and j.dedup_key = job.dedup_key
        and j.dedup is not null
        and j.job_id <> job.job_id
        limit 1
    ));
end
$$;

-- Purpose: set attempt, worker and lease of a job that starts; null if it must not start.
-- Invariant: a job that has expired dies instead. on_start() checks the limits of a start that is
-- not a claim's, and of deliveries. Raises: JQ011.
create or replace function jobq_private.stamp_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job
language plpgsql
as $$
begin
    if job.expires_at <= clock_timestamp() then
        update jobq_private.job as j
        set
            state = 'dead', last_error_code = 'EXPIRED', last_error_details = null,
            last_error = 'it did not start before ' || j.expires_at
        where j.job_id = job.job_id;
        return null;
    end if;
    if not is_claim or job.delivery_version is not null then
        job := jobq_private.on_start(job, is_claim);
        if job.job_id is null then
            return null;
        end if;
    end if;
    job.attempt := job.attempt + 1;
    job.claimed_at := coalesce(job.claimed_at, clock_timestamp());
    job.worker := coalesce(job.worker, session_user);
    job.lease_expires_at := job.claimed_at + job.lease;
    return job;
end
$$;

-- Purpose: set what follows when a job stops running, ends, or moves in its queue.
-- Invariant: a job that comes back or moves goes behind those that are due already, because claims
-- have passed the places before them. A job without attempts left cannot wait, because every claim
-- would fail on it. Raises: JQ002.
create or replace function jobq_private.stamp_wait(
    before jobq_private.job, after jobq_private.job
)
returns jobq_private.job
language plpgsql
as $$
begin
    if after.state <> before.state then
        after.lease_expires_at := null;
        after.slot := null;
        after.reported_cost := null;
        after.waits_since := clock_timestamp();
        if after.state in ('queued', 'retrying') then
            after.claimed_at := null;
            after.worker := null;
            after.uncounted := before.uncounted
                + (after.state = 'queued' and before.state = 'running')::integer;
        end if;
    end if;
    if after.state in ('queued', 'retrying') and (
        after.state <> before.state
        or (after.queue, after.priority, after.run_at, after.due_at, after.key_id) is distinct from
        (before.queue, before.priority, before.run_at, before.due_at, before.key_id)
    ) then
        -- The lock of the row has given the transaction its number, so this is after that, as
        -- keep_hint() needs it.
        after.due_at := case
            when after.key_id is null then greatest(after.run_at, clock_timestamp())
        end;
    end if;
    if after.claimed_at is null and after.attempt - after.uncounted >= after.max_attempts then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: %s of %s attempts are used; a waiting job needs one',
            before.job_id, after.attempt - after.uncounted, after.max_attempts
        ));
    end if;
    return after;
end
$$;

-- Purpose: store a job, or return the job that its dedup key stands for.
-- Invariant: the unique index decides between concurrent callers; each look follows a lost insert
-- with a new snapshot. After 20 lost inserts, or passes that left the same job in the way, it gives
-- up. Running jobs are never replaced; the slot of a schedule yields to one that runs.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_dedup_job(job jobq_private.new_job)
returns uuid
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _after constant uuid[] := job.after;
    _holder uuid;
    _seen uuid;
    _state text;
    _has_begun boolean;
    _tries integer := 0;
begin
    if job.dedup = 'throttle' then
        insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
        values (job.kind, job.dedup_key, job.job_id, now() + job.dedup_period)
        on conflict on constraint throttle_pkey do update
        set job_id = excluded.job_id, until = excluded.until
        where t.until <= now();
        if not found then
            _holder := t.job_id from jobq_private.throttle as t
            where t.kind = job.kind and t.dedup_key = job.dedup_key;
        end if;
    end if;
    while _holder is null loop
        if job.dedup in ('skip', 'replace', 'debounce') then
            select j.job_id, j.state, j.attempt > 0 into _holder, _state, _has_begun
            from jobq_private.job as j
            where j.kind = job.kind and j.dedup_key = job.dedup_key
            order by
                case when job.dedup = 'debounce' then j.attempt > 0 else j.state <> 'running' end,
                j.dedup is null, j.job_id
            limit 1;
        end if;
        _tries := _tries + coalesce((_holder = _seen)::integer, 0);
        _seen := _holder;
        if _holder is null or job.dedup = 'debounce' and _has_begun then
            -- What has begun keeps its payload: the newest request comes after it.
            if _holder is not null then
                job.after := _holder || _after;
                job.after_failure := 'run';
            end if;
            if jobq_private.on_store(array[job]) <> '{}' then
                return job.job_id;
            end if;
            job.after := _after;
            _holder := null;
            _tries := _tries + 1;
        elsif job.dedup = 'replace' and _state <> 'running' then
            update jobq_private.job as j
            set state = 'cancelled', cancel_reason = 'replaced by ' || job.job_id
            where j.job_id = _holder
            and j.state in ('blocked', 'queued', 'retrying');
            _holder := null;
        elsif job.dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, _holder
            ));
        elsif job.dedup = 'debounce' and not jobq_private.put_off(_holder, job) then
            _holder := null;
        end if;
        if _holder is null and _tries >= 20 then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s', job.kind, job.dedup_key
            ));
        end if;
    end loop;
    -- Who asks again with the idempotency key gets the job that the dedup key stands for.
    update jobq_private.idempotency_key as k
    set job_id = _holder
    where k.kind = job.kind and k.idempotency_key = job.idempotency_key
    and k.job_id = job.job_id;
    return _holder;
end
$$;

-- Purpose: fill in and check new jobs, take their keys, and store them. Returns their ids, or of the
-- jobs that hold their keys, and whether they are new, by ordinal.
-- Invariant: enqueue() stores a plain job without this function, and must make the same of it;
-- tests/pgtap/job/columns.sql compares them. All or none; ordinals are 1 to n. Idempotency keys are
-- locked first, then dedup keys, each by kind and key, so that batches cannot deadlock. A caller that
-- gets an existing job writes an empty message, so that its commit waits for disk and standby: a
-- failover cannot take back the answer to a repeated call. Jobs of schedules were checked when those
-- were declared.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], is_checked boolean default false, out ids uuid[],
    out created boolean[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _jobs jobq_private.new_job[];
    _problems text[];
    _has_keys boolean;
    _has_features boolean;
begin
    select
        array_agg(row(
            j.ordinal, j.kind, coalesce(j.payload, '{}'), s.queue,
            coalesce(
                j.run_at, case when d.dedup = 'debounce' then now() + s.dedup_period end, now()
            ),
            coalesce(j.priority, s.priority), coalesce(j.max_attempts, s.max_attempts),
            coalesce(j.timeout, s.timeout), j.idempotency_key, k.dedup_key, d.dedup,
            coalesce(j.metadata, '{}'), j.schedule_id, j.slot_at,
            coalesce(j.concurrency_key, j.payload #>> s.concurrency_key), j.expires_at,
            nullif(j.after, '{}'), j.after_failure, j.batch_id, j.callback_of,
            coalesce(j.is_awaited, false), coalesce(j.job_id, jobq_private.new_id(s.shard_id)),
            s.lease, s.keep, s.delivery_version, s.is_limited, s.dedup_period, s.dedup_max_wait,
            s.max_depth, null, coalesce(j.cost, case
                when jsonb_typeof(j.payload #> s.cost) = 'number'
                then (j.payload #>> s.cost)::numeric
            end)
        )::jobq_private.new_job order by j.ordinal),
        array_agg(p.problem) filter (where p.problem is not null),
        bool_or(num_nonnulls(j.idempotency_key, k.dedup_key) > 0),
        bool_or(s.is_limited or num_nonnulls(
            j.concurrency_key, s.concurrency_key, j.after, j.batch_id, j.callback_of
        ) > 0)
    into _jobs, _problems, _has_keys, _has_features
    from unnest(store_jobs.jobs) as j
    cross join lateral jobq_private.settings_for(j.kind, j.queue) as s
    cross join lateral (
        select coalesce(j.dedup_key, case
            when s.dedup_key is not null then jobq_private.payload_key(j.payload, s.dedup_key)
        end)
    ) as k (dedup_key)
    cross join lateral (
        select case when k.dedup_key is not null then coalesce(j.dedup, s.dedup) end
    ) as d (dedup)
    cross join lateral (
        select case when not is_checked then jobq_private.new_job_problem(j, s) end offset 0
    ) as p (problem);

    -- Raised apart, the error does not name the whole statement above.
    if _problems is not null then
        perform jobq_private.raise_error(_problems[1][1], _problems[1][2]);
    elsif _jobs is null and store_jobs.jobs <> '{}' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobq_private.setting must have its row'
        );
    elsif _has_keys then
        ids := jobq_private.store_keyed_jobs(_jobs);
        created := array(
            select j.job_id = ids[j.ordinal] from unnest(_jobs) as j order by j.ordinal
        );
        if false = any(created) then
            perform pg_logical_emit_message(true, 'jobq', '');
        end if;
        return;
    elsif _has_features then
        ids := jobq_private.on_store(_jobs);
    else
        ids := jobq_private.insert_jobs(_jobs);
    end if;
    created := array_fill(true, array[cardinality(ids)]);
end
$$;

-- Purpose: store jobs prepared by store_jobs(), some of which have keys; return their ids, or of the
-- jobs that hold their keys.
-- Invariant: unique indexes decide between concurrent callers.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ010.
create or replace function jobq_private.store_keyed_jobs(jobs jobq_private.new_job[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    _job jobq_private.new_job;
    _stored uuid[];
    _ids uuid[];
begin
    -- The slot of a schedule is taken once, and holds no key.
    select jobq_private.take_idempotency_keys(
        array_agg(j.job_id), array_agg(j.kind),
        array_agg(case when j.schedule_id is null then j.idempotency_key end)
    ) into _ids
    from unnest(store_keyed_jobs.jobs) as j;
    -- At once all but those whose dedup key a live job or another of these jobs has.
    _stored := jobq_private.on_store(array(
        select f.job
        from (
            select j as job, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(store_keyed_jobs.jobs) as j
            where _ids[j.ordinal] = j.job_id
        ) as f
        -- A limit keeps the planner from reading all live jobs instead.
        left join lateral (
            select true
            from jobq_private.job as l
            where l.kind = (f.job).kind and l.dedup_key = (f.job).dedup_key
            limit 1
        ) as l (is_live) on true
        where (f.job).dedup_key is null
        or f.place = 1 and (f.job).dedup <> 'throttle' and l.is_live is null
        order by case when (f.job).dedup_key is not null then (f.job).kind end nulls first,
            (f.job).dedup_key, (f.job).ordinal
    ));
    for _job in
        select j.*
        from unnest(store_keyed_jobs.jobs) as j
        where _ids[j.ordinal] = j.job_id
        and j.job_id not in (select s.job_id from unnest(_stored) as s (job_id))  -- hashed
        order by j.kind, j.dedup_key, j.ordinal
    loop
        _ids[_job.ordinal] := jobq_private.store_dedup_job(_job);
    end loop;
    -- Of two jobs with one idempotency key the second stands for what the first has become.
    return array(
        select coalesce(k.job_id, _ids[j.ordinal])
        from unnest(store_keyed_jobs.jobs) as j
        left join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
            and _ids[j.ordinal] <> j.job_id
        order by j.ordinal
    );
end
$$;

-- Purpose: take the idempotency keys of new jobs, and return the job that each key stands for: the
-- given one if the key was free or missing.
-- Invariant: the primary key of the keys decides between concurrent callers. Keys are locked in the
-- order of kind and key, so batches cannot deadlock. Of several jobs with one key, the first gets
-- it. A free key passes to the new job once, since it then stands for a live job.
create or replace function jobq_private.take_idempotency_keys(
    job_ids uuid[], kinds text[], keys text[]
)
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _taken bigint;
    _holders uuid[];
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        where g.key is not null
        order by g.kind, g.key, g.n
        on conflict on constraint idempotency_key_pkey do nothing;
        get diagnostics _taken = row_count;
        if _taken = cardinality(array_remove(keys, null)) then
            return job_ids;
        end if;
        update jobq_private.idempotency_key as k
        set job_id = f.job_id, created_at = now()
        from (
            select distinct on (g.kind, g.key) g.*
            from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
            where g.key is not null
            order by g.kind, g.key, g.n
        ) as f
        where k.kind = f.kind and k.idempotency_key = f.key and k.job_id <> f.job_id
        and jobq_private.is_key_free(k.kind, k.job_id, k.created_at);

        select array_agg(
            case when g.key is null then g.job_id else k.job_id end order by g.n
        )
        into _holders
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key;
        -- a key that another transaction has deleted meanwhile is free
        exit when array_position(_holders, null) is null;
    end loop;
    return _holders;
end
$$;

-- Purpose: notify clients that wait for these jobs, or for any event, that they have ended.
-- Invariant: jobs share 1024 locks, so some notifications are needless. A client that begins to
-- wait at this moment may get none, so clients also poll; see docs/protocol.md.
create or replace function jobq_private.tell_ended(job_ids uuid[])
returns void
language plpgsql
as $$
declare
    _job_id uuid;
begin
    if jobq_private.is_locked('awaiting_events', 0) then
        perform jobq_private.notify('jobq_events', '');
    end if;
    foreach _job_id in array tell_ended.job_ids loop
        if jobq_private.is_locked('ending', hashtext(_job_id::text) & 1023) then
            perform jobq_private.notify('jobq_ended', _job_id::text);
        end if;
    end loop;
end
$$;

-- Purpose: why a JSON value cannot be stored, beside others of so many bytes: the error's code and
-- detail, or null. Clients could not read it if it were deeper, or held a larger number.
-- Raises: by its callers, JQ005, JQ006.
create or replace function jobq_private.value_problem(
    value jsonb, max_bytes integer, max_depth integer, other_bytes integer default 0
)
returns text[]
language plpgsql
stable
as $$
declare
    -- 2,000 bytes of numbers, or fewer when compressed, can be a gigabyte as text.
    _is_wide constant boolean := pg_column_size(value) > 2000
        or pg_column_compression(value) is not null;
    _huge constant text[] := array[
        'PAYLOAD_INVALID', 'a number beyond the range of a double'
    ];
    _size integer;
begin
    if _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    _size := octet_length(value::text) + other_bytes;
    if _size > max_bytes then
        return array['PAYLOAD_TOO_LARGE', format('%s bytes, at most %s', _size, max_bytes)];
    elsif _size > 2 * max_depth
        and jsonb_path_exists(value, format('strict $.**{%s}', max_depth)::jsonpath)
    then
        return array['PAYLOAD_TOO_DEEP', format('at most %s levels', max_depth)];
    elsif _size > 308 and not _is_wide and jobq_private.has_huge_number(value) then
        return _huge;
    end if;
    return null;
end
$$;

-- Purpose: Cancels a waiting job, or requests cancellation of a running one, and returns which.
-- Invariant: the row lock decides between cancel and complete; the later one sees what the first
-- has done. Raises: 22004, 22023, JQ001.
-- Returns: cancelled when it waited, cancel_requested when it runs, already_finished
-- when it has ended.
-- Example: select jobq.cancel(:'waiting', 'ordered twice');
create or replace function jobq.cancel(job_id uuid, reason text default null)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _state text;
    _queue text;
begin
    perform jobq_private.check_given('job_id', num_nulls(cancel.job_id));
    perform jobq_private.check_argument(case when length(cancel.reason) > 512
        then 'reason must have at most 512 characters' end);
    select j.state, j.queue into _state, _queue
    from jobq_private.job as j
    where j.job_id = cancel.job_id
    for update;
    if not found then
        perform jobq.get_job(cancel.job_id);
        return 'already_finished';
    end if;
    perform jobq_private.record_audit('cancel', cancel.job_id::text, cancel.reason);
    if _state = 'running' then
        update jobq_private.job as j
        set
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            cancel_reason = coalesce(j.cancel_reason, cancel.reason)
        where j.job_id = cancel.job_id;
        perform jobq_private.notify('jobq_cancel', _queue);
        return 'cancel_requested';
    end if;
    update jobq_private.job as j
    set state = 'cancelled', cancel_reason = cancel.reason
    where j.job_id = cancel.job_id;
    return 'cancelled';
end
$$;

grant execute on function jobq.cancel to jobq_producer, jobq_operator;

comment on function jobq.cancel is 'Cancels a waiting job, or requests cancellation of a running one, and returns which.';

-- Purpose: Adds a job in the caller's transaction and returns its id, or the id of the existing job
-- with the same key.
-- Invariant: a taken idempotency key or dedup key yields the job that holds it.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Argument queue: the queue; null means the kind's, else default.
-- Argument expires_at: no attempt starts after this time, and the job is then dead with
-- EXPIRED; must be after run_at; null means never.
-- Argument after: jobs to wait for, live or ended; until then the job is blocked.
-- Argument batch_id: batch of the job, which must not have ended.
-- Argument cost: amount taken from rates and budgets, from 0 to 10^12; null means the value at
-- the kind's path in the payload, else 1.
-- Returns: the id of the new job, or of the existing job with the same key.
-- Example: select jobq.enqueue('send_email', '{"to": "ada@example.org"}', run_at => now() + interval '1 h');
create or replace function jobq.enqueue(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null,
    cost numeric default null
)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq_private.new_job;
    _job_id uuid;
    _queue text;
begin
    _job := row(
        1, enqueue.kind, enqueue.payload, enqueue.queue, enqueue.run_at, enqueue.priority,
        enqueue.max_attempts, enqueue.timeout, enqueue.idempotency_key, enqueue.dedup_key,
        enqueue.dedup, enqueue.metadata, null, null, enqueue.concurrency_key,
        enqueue.expires_at, enqueue.after, enqueue.after_failure, enqueue.batch_id, null, null,
        null, null, null, null, null, null, null, null, null, enqueue.cost
    );
    -- The short way of a plain job, in one statement: small payload, no keys, and its kind and queue
    -- ask for nothing. store_jobs() makes the same of it;
    -- tests/pgtap/job/columns.sql compares them.
    if num_nonnulls(
        enqueue.idempotency_key, enqueue.dedup_key, enqueue.dedup, enqueue.metadata,
        enqueue.concurrency_key, enqueue.expires_at, enqueue.after, enqueue.after_failure,
        enqueue.batch_id, enqueue.cost
    ) = 0 and (
        num_nonnulls(
            enqueue.run_at, enqueue.priority, enqueue.max_attempts, enqueue.timeout
        ) = 0 or jobq_private.invalid_option(_job) is null
    )
    then
        insert into jobq_private.job as j (
            job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease, keep,
            delivery_version
        )
        select
            jobq_private.new_id(s.shard_id), enqueue.kind, enqueue.payload, s.queue,
            coalesce(enqueue.run_at, now()), coalesce(enqueue.priority, s.priority),
            coalesce(enqueue.max_attempts, s.max_attempts),
            coalesce(enqueue.timeout, s.timeout), s.lease, s.keep, s.delivery_version
        from jobq_private.settings_for(enqueue.kind, enqueue.queue) as s
        where length(enqueue.kind) between 1 and 128
        and length(s.queue) between 1 and 128 and right(s.queue, 1) <> '*'
        and jobq_private.is_small(enqueue.payload, s.max_payload_depth)
        and enqueue.payload is not null
        and not s.is_limited
        and num_nonnulls(
            s.payload_schema, s.json_schema, s.concurrency_key, s.max_depth, s.cost,
            s.dedup_key
        ) = 0
        returning j.job_id, j.queue into _job_id, _queue;
        if found then
            perform jobq_private.wake(array[_queue]);
            return _job_id;
        end if;
    end if;
    return (jobq_private.store_jobs(array[_job])).ids[1];
end
$$;

grant execute on function jobq.enqueue to jobq_producer;

comment on function jobq.enqueue is 'Adds a job in the caller''s transaction and returns its id, or the id of the existing job with the same key.';

-- Purpose: Adds many jobs, all or none, and returns for each its id and whether it was created.
-- Invariant: all or none. An unknown member is refused.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Members jobs: enqueue
-- Column job_id: the id of the new job, or of the existing job with the same key.
-- Example: select * from jobq.enqueue_many('[{"kind": "send_email", "payload": {"to": "ada@example.org"}},
--     {"kind": "send_email", "payload": {"to": "bob@example.org"}, "priority": 5}]');
create or replace function jobq.enqueue_many(jobs jsonb)
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    select s.n::integer, s.job_id, s.created
    from jobq_private.store_jobs(jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', enqueue_many.jobs,
        '{
            kind, payload, queue, run_at, priority, max_attempts, timeout, idempotency_key,
            dedup_key, dedup, metadata, concurrency_key, expires_at, after, after_failure,
            batch_id, cost
        }'
    )) as a
    cross join lateral unnest(a.ids, a.created) with ordinality as s (job_id, created, n);
end
$$;

grant execute on function jobq.enqueue_many to jobq_producer;

comment on function jobq.enqueue_many is 'Adds many jobs, all or none, and returns for each its id and whether it was created.';

-- Purpose: Returns one job, live or archived.
-- Invariant: searches the archive from the day before the id's own time, so that older partitions
-- are skipped and a clock that was set back hides nothing. Raises: 22004, JQ001.
-- Returns: a row of jobq.job.
-- Example: select state, attempts, last_error from jobq.get_job(:'dead');
create or replace function jobq.get_job(job_id uuid)
returns jobq.job
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq.job;
begin
    perform jobq_private.check_given('job_id', num_nulls(get_job.job_id));
    -- By null alone the planner would pass over the days only after it has locked them.
    select j.* into _job
    from jobq.job as j
    where j.job_id = get_job.job_id
    and (j.finished_at is null or j.finished_at = 'infinity');
    if not found then
        select j.* into _job
        from jobq.job as j
        where j.job_id = get_job.job_id
        and j.finished_at
            >= jobq_private.id_time(get_job.job_id) - interval '1 day';
    end if;
    if not found then
        perform jobq_private.refuse_missing(get_job.job_id);
    end if;
    return _job;
end
$$;

grant execute on function jobq.get_job
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.get_job is 'Returns one job, live or archived.';

-- Purpose: Returns a dead or cancelled job to its queue, and returns its new state.
-- Invariant: its attempts start afresh, but the attempt number continues as the fencing token. It
-- is blocked if it must wait again for a job or for the end of its batch.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument max_attempts: how many attempts it gets from now on, 1 to 10000; null keeps the number.
-- Returns: queued, or blocked if it must wait again.
-- Example: select jobq.redrive(:'dead');
create or replace function jobq.redrive(
    job_id uuid, latest boolean default false, max_attempts integer default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(redrive.job_id);
    _state text;
begin
    perform jobq_private.check_given('latest', num_nulls(redrive.latest));
    perform jobq_private.check_argument(case when redrive.max_attempts not between 1 and 10000
        then 'max_attempts must be from 1 to 10000' end);
    if _job.state in ('dead', 'cancelled') then
        perform from jobq_private.job_archive as a
        where a.job_id = _job.job_id and a.finished_at = _job.finished_at
        for update;
        -- Where queue grants are enforced, who may not change the job does not find it here.
        if found then
            perform from jobq_private.redrive_jobs(
                array[_job.job_id], array[_job.finished_at], redrive.latest
            );
        end if;
        if found then
            update jobq_private.job as j
            set max_attempts = coalesce(redrive.max_attempts, j.max_attempts)
            where j.job_id = redrive.job_id
            returning j.state into _state;
        else
            perform jobq_private.refuse_redrive(_job);
            -- Somebody else has redriven it meanwhile: say what it is now.
            _job := jobq.get_job(_job.job_id);
        end if;
    end if;
    perform jobq_private.check_problem('ILLEGAL_STATE', case when _state is null then format(
        'job_id %s is %s; dead and cancelled jobs can be redriven', _job.job_id, _job.state
    ) end);
    return _state;
end
$$;

grant execute on function jobq.redrive to jobq_operator;

comment on function jobq.redrive is 'Returns a dead or cancelled job to its queue, and returns its new state.';

-- Purpose: Asks for a notification on jobq_ended when this job ends; returns true if it has already
-- ended. The session must listen.
-- Invariant: LISTEN jobq_ended has committed before. The session's shared locks are taken before
-- the job is read again, so a completion between the two reads is seen; one in flight may not be,
-- so the client looks again within 250 ms. Raises: 22004, JQ001, and then nothing is locked.
-- Returns: true if it has already ended; otherwise its id is sent on jobq_ended when it ends.
-- Example: select jobq.wait(:'running');
create or replace function jobq.wait(job_id uuid)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ending constant integer := jobq_private.lock_class('ending');
begin
    perform jobq.get_job(wait.job_id);
    perform pg_advisory_lock_shared(jobq_private.lock_class('awaiting'), 0);
    perform pg_advisory_lock_shared(_ending, hashtext(wait.job_id::text) & 1023);
    return (jobq.get_job(wait.job_id)).finished_at is not null;
end
$$;

grant execute on function jobq.wait
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.wait is 'Asks for a notification on jobq_ended when this job ends; returns true if it has already ended. The session must listen.';

-- Purpose: record the attempt that ended a job without success, and refuse rows of jobs that have
-- not ended.
-- Invariant: After the insert, because PostgreSQL checks the partition's bounds again if a trigger
-- fires before it. Raises: JQ002.
create or replace function jobq_private.archive_birth()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_dead constant boolean := new.state = 'dead';
begin
    if new.state not in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: a job cannot be archived as %s', new.job_id, new.state
        ));
    elsif new.previous_state = 'running' then
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            new.job_id, new.attempt, new.state, new.claimed_at, new.finished_at, new.worker,
            case when _is_dead then new.last_error_code end,
            case when _is_dead then new.last_error end,
            case when _is_dead then new.last_error_details end,
            case when new.delivery_version is not null then new.kind end,
            new.region
        );
    end if;
    return null;
end
$$;

create or replace trigger archive_birth
after insert on jobq_private.job_archive
for each row when (new.state <> 'succeeded')
execute function jobq_private.archive_birth();

-- Purpose: refuse changes of finished jobs. Only dead and cancelled jobs can return, and prune_at
-- can change. Raises: JQ002.
create or replace function jobq_private.archive_immutable()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kept jobq_private.job_archive := new;
begin
    _kept.state := old.state;
    _kept.prune_at := old.prune_at;
    if _kept is distinct from old or (new.state = old.state) = (
        new.prune_at is not distinct from old.prune_at
    ) then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s is finished: %s', old.job_id, old.state
        ));
    end if;
    if new.state = old.state then
        return new;
    end if;
    if new.state in ('queued', 'blocked') and old.state in ('dead', 'cancelled') then
        -- The job leaves the archive, or stays as it is: no row is updated.
        perform jobq_private.redrive_jobs(
            array[old.job_id], array[old.finished_at], target => new.state
        );
        return null;
    end if;
    new.previous_state := old.state;
    new.transition_slot := (pg_backend_pid() & 1023)::smallint;
    return new;
end
$$;

create or replace trigger archive_immutable
before update on jobq_private.job_archive
for each row execute function jobq_private.archive_immutable();

-- Purpose: refuse a new row with a past, and set the job's place in the order of claims.
-- Invariant: only redrive_jobs() stores a job with a past: that of its row in the archive, which it
-- deletes later; and receive_jobs(), with the past that another database has sent, which it has
-- stored before, in the same transaction. No WHEN clause: PostgreSQL parses one again for every
-- statement. Raises: JQ002.
create or replace function jobq_private.job_birth()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_new constant boolean := new.state in ('queued', 'blocked')
        and new.previous_state is null and new.attempt = 0 and new.uncounted = 0;
    _is_known boolean := _is_new;
begin
    if not _is_new then
        _is_known := new.state in ('queued', 'blocked') and new.attempt = new.uncounted and exists (
            select from jobq_private.job_archive as a
            where a.job_id = new.job_id and a.attempt = new.attempt
            and a.state = new.previous_state and a.state in ('dead', 'cancelled')
            and a.finished_at >= jobq_private.id_time(new.job_id) - interval '1 day'
        )
        or new.state in ('queued', 'retrying') and exists (
            select from jobq_private.moved_job as m
            where m.job_id = new.job_id and m.shard_id is null
            and m.job ->> 'state' = new.state
            and m.job ->> 'previous_state' is not distinct from new.previous_state
            and (m.job ->> 'attempt')::integer = new.attempt
            and (m.job ->> 'uncounted')::integer = new.uncounted
        );
    end if;
    if not (
        _is_known and new.attempt - new.uncounted < new.max_attempts
        and num_nonnulls(new.claimed_at, new.lease_expires_at, new.worker) = 0
        and (new.concurrency_key is null or new.key_id is not null)
    ) then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: a new job must be queued or blocked, under its key, and have no past',
            new.job_id
        ));
    end if;
    -- The transaction gets its number before the clock is read: keep_hint() relies on it.
    new.due_at := case
        when new.state in ('queued', 'retrying') and new.key_id is null
            and pg_current_xact_id() is not null
        then greatest(new.run_at, clock_timestamp())
    end;
    return new;
end
$$;

create or replace trigger job_birth
before insert on jobq_private.job
for each row execute function jobq_private.job_birth();

-- Purpose: act when a live job stops running or ends: a job in a final state moves to the archive;
-- another ended attempt is recorded, and a worker is woken for the next one.
-- Invariant: update … set state is therefore enough, for functions and psql alike.
create or replace function jobq_private.job_end()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.archive_jobs(array[new.job_id], array[new.attempt], new.state);
    elsif old.lease_expires_at is not null then
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            old.job_id, old.attempt, new.state, old.claimed_at,
            greatest(clock_timestamp(), old.created_at), old.worker,
            case when new.state = 'retrying' then new.last_error_code end,
            case when new.state = 'retrying' then new.last_error end,
            case when new.state = 'retrying' then new.last_error_details end,
            case when old.delivery_version is not null then old.kind end,
            old.region
        );
        if num_nonnulls(old.key_id, old.slot) > 0 then
            perform jobq_private.on_end(array[row(
                old.job_id, old.attempt, new.state, old.queue, old.kind, old.key_id,
                old.concurrency_key, old.slot, old.is_awaited, old.batch_id, false
            )::jobq_private.ending]);
        end if;
    end if;
    if new.state in ('queued', 'retrying') and new.state <> old.state then
        perform jobq_private.wake(array[new.queue]);
    end if;
    return null;
end
$$;

-- One trigger with a short condition: PostgreSQL parses it again for every statement, claims too.
create or replace trigger job_end
after update on jobq_private.job
for each row
when (new.lease_expires_at is null)
execute function jobq_private.job_end();

-- Purpose: refuse changes of a job's identity, of the payload of a job that has run, and of
-- max_attempts, timeout or lease to an invalid value. Fires only for updates that name one of
-- these columns.
-- Raises: JQ002.
create or replace function jobq_private.job_identity()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if (
        old.job_id, old.kind, old.created_at, old.idempotency_key,
        old.dedup_key, old.dedup, old.schedule_id, old.slot_at,
        old.delivery_version, old.concurrency_key, old.batch_id, old.cost
    ) is distinct from (
        new.job_id, new.kind, new.created_at, new.idempotency_key,
        new.dedup_key, new.dedup, new.schedule_id, new.slot_at,
        new.delivery_version, new.concurrency_key, new.batch_id, new.cost
    )
    or (new.payload is distinct from old.payload
        and (
            old.attempt > 0 or new.state <> old.state
            or old.state not in ('queued', 'blocked')
        ))
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: id, kind, keys, schedule, batch, cost, delivery_version and created_at never change, nor the payload of a job that has run',
            old.job_id
        ));
    end if;
    if new.max_attempts not between 1 and 10000
        or new.timeout not between interval '1 ms' and interval '365 days'
        or new.lease not between interval '1 s' and interval '1 day'
    then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: max_attempts must be from 1 to 10000, timeout from 1 ms to 365 days, lease from 1 s to 1 day',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_identity
before update of
job_id, kind, payload, created_at, idempotency_key, dedup_key, dedup, schedule_id, slot_at,
delivery_version, concurrency_key, batch_id, cost, max_attempts,
timeout, lease
on jobq_private.job
for each row
execute function jobq_private.job_identity();

-- Purpose: refuse an update that sets attempt outside of a claim, because only claims check limits
-- before they start a job.
-- Invariant: start_jobs() sets attempt. It is recognized in the call stack, in any language of
-- messages. Raises: JQ002.
create or replace function jobq_private.job_start()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _stack text;
begin
    get diagnostics _stack = pg_context;
    if strpos(_stack, 'jobq_private.start_jobs(') = 0 then
        perform jobq_private.raise_error(
            'IMMUTABLE', 'attempt, previous_state and lease follow from the state'
        );
    end if;
    return null;
end
$$;

create or replace trigger job_start
before update of attempt on jobq_private.job
for each statement execute function jobq_private.job_start();

-- Purpose: set everything that follows from a change of state: previous_state, attempt, lease.
-- Invariant: each change sets previous_state and the session's slot, so the foreign key checks it.
-- A lease changes only with the state or by a heartbeat, and never exceeds claimed_at + timeout +
-- lease, so a frozen worker cannot renew it forever. Raises: JQ002, JQ011.
create or replace function jobq_private.job_transition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _is_claim boolean := false;
    _started jobq_private.job;
begin
    -- A claim has set these columns itself. They are only compared, unless the job can expire,
    -- is a delivery, or the clock was set back: then stamp_start() sets them again.
    if new.state = 'running' and old.state in ('queued', 'retrying')
        and new.attempt = old.attempt + 1 and new.previous_state = old.state
        and new.lease_expires_at = new.claimed_at + old.lease
        and new.uncounted = old.uncounted
        and new.worker is not null and new.heartbeat_at is null
    then
        if new.claimed_at between statement_timestamp() and clock_timestamp()
            and new.transition_slot = pg_backend_pid() & 1023
            and old.expires_at is null and old.delivery_version is null
        then
            return new;
        end if;
        _is_claim := true;
        new.attempt := old.attempt;
        new.previous_state := old.previous_state;
        new.claimed_at := old.claimed_at;
        new.lease_expires_at := old.lease_expires_at;
    end if;

    new.transition_slot := old.transition_slot;
    if new.previous_state is distinct from old.previous_state
        or new.attempt <> old.attempt or new.uncounted <> old.uncounted
        or new.lease_expires_at is distinct from old.lease_expires_at
        or new.claimed_at is distinct from old.claimed_at
        or new.state = old.state and (
            new.worker is distinct from old.worker
            or new.slot <> old.slot or new.slot is null and old.slot is not null
            or new.heartbeat_at is distinct from old.heartbeat_at and new.state <> 'running'
        )
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: previous_state, attempt, worker, lease and slot follow from the state',
            old.job_id
        ));
    end if;

    if new.state = 'running' and old.state <> 'running' then
        _started := jobq_private.stamp_start(new, _is_claim);
        if _started.job_id is null then
            return null;
        end if;
        new := _started;
    elsif new.heartbeat_at is distinct from old.heartbeat_at and new.state = 'running' then
        new.heartbeat_at := clock_timestamp();
        new.lease_expires_at := greatest(old.lease_expires_at, least(
            new.heartbeat_at + old.lease, old.claimed_at + old.timeout + old.lease
        ));
    end if;
    if new.state <> old.state then
        new.previous_state := old.state;
        new.transition_slot := pg_backend_pid() & 1023;
        new.heartbeat_at := null;
    end if;
    if new.state <> 'running' then
        new := jobq_private.stamp_wait(old, new);
    end if;
    return new;
end
$$;

create or replace trigger job_transition
before update on jobq_private.job
for each row execute function jobq_private.job_transition();

-- Purpose: copy new transitions into every slot.
create or replace function jobq_private.transition_slot()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.transition_slot (slot, from_state, to_state)
    select n.slot, a.from_state, a.to_state
    from generate_series(0, 1023) as n (slot)
    cross join added as a;
    return null;
end
$$;

create or replace trigger transition_slot
after insert on jobq_private.transition
referencing new table as added
for each statement execute function jobq_private.transition_slot();

commit;
