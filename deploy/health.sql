-- Deploy jobq:health to pg
-- Made by sql/snapshot.py from sql/health/: edit that.
begin;
set local role jobq_owner;

-- Purpose: what a client and the database disagree about: the time, and the release.
-- Invariant: reads only; what is null is not compared. release has for each function's
-- name the MD5 sums that its body may have; those of the functions whose constants are the database's
-- own are left out. Raises: nothing.
create or replace function jobq_private.client_health(client_time timestamptz, release jsonb)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'clock', abs(d.seconds) < 5,
        format('the database is %s s %s the client', round(abs(d.seconds), 1),
            case when d.seconds < 0 then 'behind' else 'ahead of' end),
        'set both clocks by NTP: what is due, and every lease, go by the database''s'
    from (
        select extract(epoch from clock_timestamp() - client_health.client_time) as seconds
    ) as d
    where d.seconds is not null
    union all
    select
        'schema', count(*) filter (where f.is_other) = 0,
        case when count(*) filter (where f.is_other) = 0
            then format('all %s functions are those of this release', count(*))
            else format('%s functions are not those of this release: %s',
                count(*) filter (where f.is_other),
                left(string_agg(f.function, ', ' order by f.function)
                    filter (where f.is_other), 200))
        end,
        'run jobq deploy of the release that workers and clients use'
    from (
        select
            coalesce(p.function, r.function) as function,
            (r.sums ? p.sum) is not true as is_other
        from (
            select format('%s.%s', n.nspname, s.proname) as function, md5(s.prosrc) as sum
            from pg_proc as s
            join pg_namespace as n on n.oid = s.pronamespace
            where n.nspname in ('jobq', 'jobq_http', 'jobq_private')
            and (n.nspname, s.proname) not in (
                ('jobq_private', 'own_shard'), ('jobq_private', 'defaults'),
                ('jobq_private', 'has_kind_rules'), ('jobq_private', 'has_queue_rules')
            )
        ) as p
        full join jsonb_each(client_health.release) as r (function, sums)
            on r.function = p.function
    ) as f
    where client_health.release is not null
    having client_health.release is not null
$$;

revoke all on function jobq_private.client_health from public;

comment on function jobq_private.client_health is
'What a client and the database disagree about, each with its remedy.';

-- Purpose: count what waits in queues of which waiting_counts() sees only a part.
-- Invariant: one look at all live jobs, in a twentieth of the time at most. Raises: nothing.
create or replace function jobq_private.count_waiting()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _started constant timestamptz := clock_timestamp();
begin
    if exists (
        select from jobq_private.waiting_count as c
        where c.counted_at + 20 * c.took > _started
    ) then
        return;
    end if;
    delete from jobq_private.waiting_count;
    insert into jobq_private.waiting_count (queue, queued, scheduled, retrying, counted_at, took)
    select
        j.queue,
        count(*) filter (where j.state = 'queued' and j.run_at <= _started),
        count(*) filter (where j.state = 'queued' and j.run_at > _started),
        count(*) filter (where j.state = 'retrying'),
        _started, '0'
    from jobq_private.job as j
    where j.state in ('queued', 'retrying')
    group by j.queue
    having count(*) > 100;
    update jobq_private.waiting_count as c set took = clock_timestamp() - _started;
end
$$;

revoke all on function jobq_private.count_waiting from public;

comment on function jobq_private.count_waiting is
'Counts what waits in long queues.';

-- Purpose: a list in a sentence: whole parts, as many as 500 letters hold, and how many more.
-- Invariant: the first part is there however long it is, up to 2,000 letters. Raises: nothing.
create or replace function jobq_private.listed(parts text[], separator text default ', ')
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        string_agg(left(p.part, 2000), listed.separator order by p.nth) filter (where p.fits)
        || coalesce(' and ' || nullif(count(*) filter (where not p.fits), 0) || ' more', '')
    from (
        select
            n.part, n.nth,
            n.nth = 1 or sum(length(n.part || listed.separator)) over (order by n.nth) <= 500 as fits
        from unnest(listed.parts) with ordinality as n (part, nth)
    ) as p
$$;

revoke all on function jobq_private.listed from public;

comment on function jobq_private.listed is
'Returns a list in a sentence, of whole parts.';

-- Purpose: count what waits in queues, at a cost that has an end.
-- Invariant: first looks at as many jobs of each queue, then gives what is left of the number to
-- those of which there are more, in two rounds. A queue of which queued, scheduled and retrying
-- together are more than ends_at may have more of each. oldest is of what was seen.
-- Raises: nothing.
create or replace function jobq_private.look_waiting(queues text[], most integer)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    ends_at integer
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _count constant integer := cardinality(look_waiting.queues);
    _floor constant integer := least(100, 1 + 2 * look_waiting.most / greatest(1, _count));
    _end integer := least(look_waiting.most, _floor + look_waiting.most / greatest(1, _count));
    _open integer[] := array(select generate_series(1, _count));
    _cut integer[];
    _left integer := look_waiting.most;
    _queued bigint[];
    _scheduled bigint[];
    _retrying bigint[];
    _oldest timestamptz[];
    _ends integer[];
    _found record;
    _n integer;
begin
    for _round in 1..3 loop
        _cut := '{}';
        foreach _n in array _open loop
            select
                count(*) as seen,
                count(*) filter (where s.state = 'queued' and s.run_at <= _now) as queued,
                count(*) filter (where s.state = 'queued' and s.run_at > _now) as scheduled,
                count(*) filter (where s.state = 'retrying') as retrying,
                min(s.run_at) filter (where s.run_at <= _now) as oldest
            into _found
            from (
                (
                    select j.state, j.run_at from jobq_private.job as j
                    where j.queue = look_waiting.queues[_n]
                    and j.state in ('queued', 'retrying') and j.lane_id is null
                    limit _end + 1
                )
                union all
                (
                    select j.state, j.run_at from jobq_private.job as j
                    where j.queue = look_waiting.queues[_n]
                    and j.state in ('queued', 'retrying')
                    and j.lane_id between jobq_private.lane_floor(look_waiting.queues[_n])
                        and jobq_private.lane_ceiling(look_waiting.queues[_n])
                    limit _end + 1
                )
            ) as s;
            _queued[_n] := _found.queued;
            _scheduled[_n] := _found.scheduled;
            _retrying[_n] := _found.retrying;
            _oldest[_n] := _found.oldest;
            _ends[_n] := _end;
            if _found.seen > _end then
                _cut := _cut || _n;
            else
                _left := _left - _found.seen::integer;
            end if;
        end loop;
        exit when _cut = '{}' or _left / cardinality(_cut) <= _end;
        _end := _left / cardinality(_cut);
        _open := _cut;
    end loop;
    return query
    select s.queue, s.queued, s.scheduled, s.retrying, s.oldest, s.ends_at
    from unnest(look_waiting.queues, _queued, _scheduled, _retrying, _oldest, _ends)
        as s (queue, queued, scheduled, retrying, oldest, ends_at);
end
$$;

revoke all on function jobq_private.look_waiting from public;

comment on function jobq_private.look_waiting is
'Counts the jobs that wait in queues, up to an end.';

-- Purpose: about how many members of multixacts the server keeps: all of them share one
-- bounded space, and PostgreSQL tells neither its size nor what is in use.
-- Invariant: reads at most 200 multixacts, evenly spread over those that are kept, none
-- older than the last checkpoint or any database knows. Raises: nothing.
create or replace function jobq_private.multixact_members()
returns bigint
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(round(avg(s.members) * max(k.kept)), 0)::bigint
    from (
        select
            c.next_multixact_id::text::bigint as next,
            least(mxid_age(c.oldest_multi_xid), (
                select max(mxid_age(d.datminmxid)) from pg_database as d
            )) - mxid_age(c.next_multixact_id) as kept
        from pg_control_checkpoint() as c
    ) as k
    cross join generate_series(1, least(k.kept, 200)) as n
    cross join lateral (
        select count(*) as members
        from pg_get_multixact_members((
            greatest(1, (k.next - n::bigint * k.kept / least(k.kept, 200) + 4294967296)
                % 4294967296)
        )::text::xid)
    ) as s
$$;

revoke all on function jobq_private.multixact_members from public;

comment on function jobq_private.multixact_members is
'About how many members of multixacts the server keeps.';

-- Purpose: forget idempotency keys past their retention, workers long gone, and gates at which
-- nothing is spent or held.
-- Invariant: a bounded number at a call; the key of a live job stays, and a gate for which a lane
-- waits, so that no claim finds it locked by this call. Raises: nothing.
create or replace function jobq_private.prune(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _keys bigint;
begin
    delete from jobq_private.worker as w where w.seen_at < now() - interval '10 min';

    delete from jobq_private.gate as g
    where g.ctid = any (array(
        select o.ctid
        from jobq_private.gate as o
        where o.queue is not null
        and o.passed_until < now()
        and o.held_until < now()
        and not exists (select from jobq_private.job as j where j.job_id = o.head_job_id)
        and not exists (select from jobq_private.lane as l where l.lane_id = o.gate_id)
        and not exists (select from jobq_private.lane as l where l.key_gate_id = o.gate_id)
        limit prune.max_rows
        for update skip locked
    ));

    delete from jobq_private.throttle as t
    where t.ctid = any (array(
        select o.ctid from jobq_private.throttle as o
        where o.until < now()
        limit prune.max_rows
        for update skip locked
    ));

    with old as materialized (
        select k.kind, k.idempotency_key
        from jobq_private.idempotency_key as k
        where k.created_at < now() - (select g.key_retention from jobq_private.setting as g)
        and not exists (select from jobq_private.job as j where j.job_id = k.job_id)
        order by k.created_at
        limit prune.max_rows
        for update skip locked
    )
    delete from jobq_private.idempotency_key as k
    using old as o
    where k.kind = o.kind and k.idempotency_key = o.idempotency_key;
    get diagnostics _keys = row_count;
    return _keys;
end
$$;

revoke all on function jobq_private.prune from public;

comment on function jobq_private.prune is
'Forgets idempotency keys past their retention, workers long gone, and gates that say nothing.';

-- Purpose: kinds with a job that is due, which no live worker of its queue has a handler for.
-- Invariant: reads only; looks at kinds that a worker has met, among the first 10,000 jobs of
-- each queue. Raises: nothing.
create or replace view jobq_private.unknown_kind as
select m.kind, m.queue
from (
    select distinct k.kind, q.queue
    from jobq_private.worker as w
    cross join lateral unnest(w.except_kinds) as k (kind)
    cross join lateral unnest(w.queues) as q (queue)
    where w.seen_at > now() - interval '1 min'
) as m
where jobq_private.is_unknown(m.kind, m.queue)
and exists (
    select
    from (
        select j.kind
        from jobq_private.job as j
        where j.queue = m.queue and j.state in ('queued', 'retrying') and j.run_at <= now()
        order by j.priority desc, j.run_at
        limit 10000
    ) as f
    where f.kind = m.kind
);

revoke all on table jobq_private.unknown_kind from public;

comment on view jobq_private.unknown_kind is
'Kinds with a job that is due, which no live worker of its queue has a handler for.';

-- Purpose: the queues in which jobs wait, found by steps from each to the next.
-- Invariant: a descent of an index for each queue, however many jobs wait: one index has
-- the jobs in lanes, another those that are in none. Of two queues whose lanes are one range, which
-- chance gives to one pair in 10^14, it has one. Raises: nothing.
create or replace view jobq_private.waiting_queue as
with recursive ready as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is null
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is null
        and j.queue > r.queue
        order by j.queue
        limit 1
    )
    from ready as r
    where r.queue is not null
),
laned as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.lane_id is not null
        order by j.lane_id
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying')
        and j.lane_id > jobq_private.lane_ceiling(l.queue)
        order by j.lane_id
        limit 1
    )
    from laned as l
    where l.queue is not null
)
select r.queue from ready as r where r.queue is not null
union
select l.queue from laned as l where l.queue is not null;

revoke all on table jobq_private.waiting_queue from public;

comment on view jobq_private.waiting_queue is
'Queues in which jobs wait.';

-- Purpose: queues whose jobs have been due for a minute while no live worker serves them.
-- Invariant: reads only; asks of a hundred queues at once whether one of them has any, and
-- names those of the first five hundreds that do, so that its cost has an end with ten
-- thousand queues too. Raises: nothing.
create or replace view jobq_private.unserved_queue as
with part as (
    select array_agg(u.queue order by u.queue) as queues
    from (
        select w.queue, (row_number() over (order by w.queue) - 1) / 100 as number
        from jobq_private.waiting_queue as w
        where not exists (
            select from jobq_private.worker as k
            where w.queue = any(k.queues) and k.seen_at > now() - interval '1 min'
        )
    ) as u
    group by u.number
),
due as (
    select p.queues
    from part as p
    where jobq.next_due(p.queues) < now() - interval '1 min'
    limit 5
)
select q.queue
from due as d
cross join lateral unnest(d.queues) as q (queue)
where jobq.next_due(array[q.queue]) < now() - interval '1 min';

revoke all on table jobq_private.unserved_queue from public;

comment on view jobq_private.unserved_queue is
'Queues whose jobs have been due for a minute while no live worker serves them, some 500 at most.';

-- Purpose: what in the queue's own tables threatens the promise.
-- Invariant: reads only; each part is one index probe or a statistic. Raises: nothing.
create or replace function jobq_private.queue_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'leases', count(*) = 0,
        format('%s leases expired more than 10 s ago', count(*)),
        'run a worker, or have maintain() called every few seconds'
    from jobq_private.job as j
    where j.state = 'running' and j.lease_expires_at < now() - interval '10 s'
    union all
    select
        'workers', count(*) filter (where w.seen_at > now() - interval '1 min') > 0,
        format('%s workers were seen in the last minute',
            count(*) filter (where w.seen_at > now() - interval '1 min')),
        'start a worker'
    from jobq_private.worker as w
    union all
    select
        'queues', count(*) = 0,
        coalesce(
            'no live worker serves ' || jobq_private.listed(array_agg(u.queue order by u.queue)),
            'every queue with due jobs has a live worker'
        ),
        'start a worker with these queues, or call work() where their kinds are functions'
    from jobq_private.unserved_queue as u
    union all
    select
        'kinds', count(*) = 0,
        coalesce(
            'no live worker knows ' || jobq_private.listed(array_agg(
                format('%s in queue %s', u.kind, u.queue) order by u.kind, u.queue
            )),
            'every kind that workers have met has one that knows it'
        ),
        'start a worker that has handlers for these kinds, or drivers and keys'
    from jobq_private.unknown_kind as u
    union all
    select
        'functions', count(*) = 0,
        coalesce(
            jobq_private.listed(array_agg(
                format('kind %s needs %s', k.kind, coalesce(p.problem, b.bar)) order by k.kind
            ), '; '),
            'every function that a kind runs is there'
        ),
        'create the function, let the log-in of a worker run it, or declare the kind with put_kind() anew'
    from jobq_private.kind as k
    cross join lateral jobq_private.sql_function_problem(k.run) as p (problem)
    cross join lateral jobq_private.sql_function_bar(k.run) as b (bar)
    where k.run is not null and coalesce(p.problem, b.bar) is not null
    union all
    select
        'slots', count(*) = 0,
        coalesce(
            jobq_private.listed(array_agg(
                format('%s slots of worker %s are held by handlers that hang', w.stuck, w.worker)
                order by w.worker
            )),
            'no handler holds a slot of its worker past its timeout'
        ),
        'give these handlers timeouts of their own, or have them run in processes'
    from jobq_private.worker as w
    where w.stuck > 0 and w.seen_at > now() - interval '1 min'
    union all
    select
        'maintenance', count(*) = 0,
        coalesce(
            jobq_private.listed(array_agg(m.problem order by m.problem), '; '), 'no task has failed'
        ),
        'mend what the error names, or end that session; maintain() tries again at each call'
    from (
        select format(
            '%s failed %s times, last at %s: %s %s',
            f.task, f.failures, f.failed_at, f.sqlstate, f.error
        )
        from jobq_private.failed_task as f
        union all
        select format(
            '%s keeps maintain() to itself, which was last done at %s',
            coalesce('pid ' || l.pid, 'a prepared transaction'), h.rolled_to
        )
        from pg_locks as l
        join pg_database as d on d.oid = l.database and d.datname = current_database()
        cross join jobq_private.history_mark as h
        where l.locktype = 'advisory'
        and l.classid = jobq_private.lock_class('maintaining')::oid
        and l.granted
        and h.rolled_to < now() - interval '5 min'
    ) as m (problem)
    union all
    select
        'schedules', count(*) = 0,
        coalesce(
            left(string_agg(
                format('%s was to fire at %s: %s', s.name, s.next_run_at, s.failure),
                '; ' order by s.name
            ), 500),
            'no schedule has failed to fire'
        ),
        'mend what the error names, or change or retire the schedule; it is tried again each minute, and the others fire'
    from jobq_private.schedule as s
    where s.retry_at is not null and s.status = 'active'
    union all
    select
        'dead_tuples', d.dead < 50000 or d.dead < d.live,
        format('%s dead and %s live rows in the table of live jobs', d.dead, d.live),
        'end what holds back vacuum (see snapshot), then vacuum jobq_private.job'
    from (
        select
            pg_stat_get_dead_tuples('jobq_private.job'::regclass) as dead,
            pg_stat_get_live_tuples('jobq_private.job'::regclass) as live
    ) as d
    union all
    select
        'triggers', count(*) = 0,
        case when count(*) = 0 then 'none is disabled'
            else 'disabled: ' || left(string_agg(
                format('%s of %s', t.tgname, t.tgrelid::regclass), ', ' order by t.tgname
            ), 200)
        end,
        'alter table … enable trigger all: without them illegal changes are stored'
    from pg_trigger as t
    join pg_class as c on c.oid = t.tgrelid
    where c.relnamespace in ('jobq'::regnamespace, 'jobq_private'::regnamespace)
    and t.tgenabled not in ('O', 'A')
    union all
    select
        'partitions', to_regclass('jobq_private.job_archive_' || t.tomorrow) is not null,
        format('the archive of tomorrow, %s, %s', t.tomorrow, case
            when to_regclass('jobq_private.job_archive_' || t.tomorrow) is null
            then 'is missing' else 'is ready' end),
        'have maintain() called; until then finished jobs go to the default partition'
    from (
        select to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD') as tomorrow
    ) as t
$$;

revoke all on function jobq_private.queue_health from public;

comment on function jobq_private.queue_health is
'What in the queue threatens the promise, each with its remedy.';

-- Purpose: bring the queue's own history up to the last full minute, forget what is old, and
-- count what waits in long queues.
-- Invariant: at most ten minutes a call, and each once: the row of the mark is locked. A
-- minute is counted ten seconds after it has ended, so that calls under way are in it.
-- Where grants by queue are enforced, a log-in that holds all queues does it.
-- Raises: nothing.
create or replace function jobq_private.roll_up()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _since timestamptz;
    _until constant timestamptz := date_trunc('minute', clock_timestamp() - interval '10 s');
    _to timestamptz;
    _rows bigint;
begin
    if row_security_active('jobq_private.job') and not coalesce(
        (select h.any_of && '{*}' from jobq_private.held_queue as h), false
    ) then
        return 0;
    end if;
    select greatest(m.rolled_to, _until - interval '3 h') into _since
    from jobq_private.history_mark as m
    where m.rolled_to < _until
    for update skip locked;
    if not found then
        return 0;
    end if;

    _to := least(_until, _since + interval '10 min');
    _rows := jobq_private.roll_up_minutes(_since, _to);
    perform jobq_private.widen_history(1, 10, _since, _to);
    perform jobq_private.widen_history(10, 60, _since, _to);
    delete from jobq_private.history as h
    using (values (1, interval '3 h'), (10, '50 h'), (60, '32 days')) as k (minutes, kept)
    where h.minutes = k.minutes and h.bucket < _until - k.kept;
    delete from jobq_private.latency as l
    using (values (1, interval '3 h'), (10, '50 h'), (60, '32 days')) as k (minutes, kept)
    where l.minutes = k.minutes and l.bucket < _until - k.kept;
    perform jobq_private.count_waiting();
    update jobq_private.history_mark as m set rolled_to = _to;
    return _rows;
end
$$;

revoke all on function jobq_private.roll_up from public;

comment on function jobq_private.roll_up is
'Brings the queue''s own history up to the last full minute, and forgets what is old.';

-- Purpose: count what happened from one minute to another, by minute, queue and kind.
-- Invariant: reads what ended by its time, what was made by its id, and nothing twice; of
-- each minute at most 20 pairs of queue and kind, the rest as (other). What is new is added to the
-- totals of some 500 queues, which only grow. Raises: nothing.
create or replace function jobq_private.roll_up_minutes(
    since timestamptz, until timestamptz
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
    -- Bounds of the minutes, as times and as ids, and of the classes of latency, in seconds.
    _times constant timestamptz[] := array(
        select t from generate_series(since, until, interval '1 min') as t
    );
    _ids constant uuid[] := array(
        select jobq_private.id_floor(t) from unnest(_times) as t
    );
    _classes constant double precision[] := array(
        select (power(2, k / 2.0) - 1) / 1000 from generate_series(1, 49) as k
    );
    _last constant integer := cardinality(_times);
    _rows bigint;
begin
    with ended as materialized (
        select
            width_bucket(a.finished_at, _times) as n, a.queue, a.kind, a.state,
            width_bucket(date_part('epoch', a.finished_at - case a.attempt
                when 1 then greatest(a.run_at, a.created_at) else a.created_at
            end), _classes) as class,
            width_bucket(a.job_id, _ids) as made,
            count(*) as jobs
        from jobq_private.job_archive as a
        where a.finished_at >= since and a.finished_at < until
        group by 1, 2, 3, 4, 5, 6
    ),
    counted as (
        select e.n, e.queue, e.kind, 0::bigint as enqueued,
            sum(e.jobs) filter (where e.state = 'succeeded') as succeeded,
            0::bigint as failed,
            sum(e.jobs) filter (where e.state = 'dead') as dead,
            sum(e.jobs) filter (where e.state = 'cancelled') as cancelled
        from ended as e
        group by 1, 2, 3
        union all
        select e.made, e.queue, e.kind, sum(e.jobs), 0, 0, 0, 0
        from ended as e
        where e.made between 1 and _last - 1
        group by 1, 2, 3
        union all
        select m.n, m.queue, m.kind, m.jobs, 0, 0, 0, 0
        from (
            select width_bucket(j.job_id, _ids) as n, j.queue, j.kind, count(*) as jobs
            from jobq_private.job as j
            where j.job_id >= _ids[1] and j.job_id < _ids[_last]
            group by 1, 2, 3
            union all
            select width_bucket(a.job_id, _ids), a.queue, a.kind, count(*)
            from jobq_private.job_archive as a
            where a.job_id >= _ids[1] and a.job_id < _ids[_last] and a.finished_at >= until
            group by 1, 2, 3
        ) as m
        union all
        select f.n, f.queue, f.kind, 0, 0, count(*), 0, 0
        from (
            select width_bucket(t.finished_at, _times) as n,
                coalesce(j.queue, a.queue) as queue, coalesce(j.kind, a.kind) as kind
            from jobq_private.attempt as t
            left join jobq_private.job as j on j.job_id = t.job_id
            left join lateral (
                select h.queue, h.kind
                from jobq_private.job_archive as h
                where j.job_id is null and h.job_id = t.job_id
                and h.finished_at >= t.finished_at
                limit 1
            ) as a on true
            where t.finished_at >= since and t.finished_at < until
            and t.state = 'retrying'
        ) as f
        where f.queue is not null
        group by 1, 2, 3
    ),
    ranked as (
        select c.n, c.queue, c.kind,
            sum(c.enqueued) as enqueued, sum(c.succeeded) as succeeded,
            sum(c.failed) as failed, sum(c.dead) as dead, sum(c.cancelled) as cancelled,
            row_number() over (
                partition by c.n
                order by sum(c.enqueued) + coalesce(sum(c.succeeded), 0) desc, c.queue, c.kind
            ) as place
        from counted as c
        group by c.n, c.queue, c.kind
    ),
    stored as (
        insert into jobq_private.history (
            minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
        )
        select 1, _times[r.n], p.queue, p.kind,
            sum(r.enqueued), coalesce(sum(r.succeeded), 0), sum(r.failed),
            coalesce(sum(r.dead), 0), coalesce(sum(r.cancelled), 0)
        from ranked as r
        cross join lateral (
            select case when r.place <= 20 then r.queue else '(other)' end as queue,
                case when r.place <= 20 then r.kind else '(other)' end as kind
        ) as p
        group by r.n, p.queue, p.kind
        on conflict on constraint history_pkey do nothing
        returning queue, enqueued, succeeded, failed, dead, cancelled
    ),
    added as (
        insert into jobq_private.total as t (
            queue, enqueued, succeeded, failed, dead, cancelled
        )
        select
            k.queue, sum(s.enqueued), sum(s.succeeded), sum(s.failed), sum(s.dead),
            sum(s.cancelled)
        from stored as s
        cross join lateral (
            select case
                when (select count(*) from jobq_private.total) < 500
                or exists (select from jobq_private.total as o where o.queue = s.queue)
                then s.queue
                else '(other)'
            end as queue
        ) as k
        group by k.queue
        order by k.queue
        on conflict on constraint total_pkey do update
        set
            enqueued = t.enqueued + excluded.enqueued,
            succeeded = t.succeeded + excluded.succeeded,
            failed = t.failed + excluded.failed,
            dead = t.dead + excluded.dead,
            cancelled = t.cancelled + excluded.cancelled
    ),
    classes as (
        select e.n, e.class, sum(e.jobs) as jobs
        from ended as e
        where e.state = 'succeeded'
        group by e.n, e.class
    ),
    timed as (
        insert into jobq_private.latency (minutes, bucket, counts)
        select 1, _times[m.n], array_agg(coalesce(c.jobs, 0) order by k)
        from (select distinct c.n from classes as c) as m
        cross join generate_series(0, 49) as k
        left join classes as c on c.n = m.n and c.class = k
        group by m.n
        on conflict on constraint latency_pkey do nothing
    )
    select count(*) into _rows from stored;
    return _rows;
end
$$;

revoke all on function jobq_private.roll_up_minutes from public;

comment on function jobq_private.roll_up_minutes is
'Counts what happened from one minute to another, by minute, queue and kind.';

-- Purpose: what in the server's configuration and state threatens the promise.
-- Invariant: reads only. The pid of a snapshot's holder is seen by members of
-- pg_read_all_stats; others see its age. Raises: nothing.
create or replace function jobq_private.server_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        s.name, s.setting = 'on' or s.setting like 'remote%' or s.setting = 'local',
        format('%s = %s', s.name, s.setting),
        format('set %s = on: a crash may lose what was acknowledged, or bloat grows', s.name)
    from pg_settings as s
    where s.name in ('fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum')
    union all
    select
        'snapshot', coalesce(bool_and(h.is_young), true),
        coalesce(
            min(format('%s holds back vacuum by %s transactions%s', h.holder, h.age, h.since))
                filter (where h.nth = 1),
            'nobody holds back vacuum'
        ),
        'end the session, drop the replication slot, or finish the prepared transaction'
    from (
        select
            g.holder, age(g.xmin) as age,
            ', for ' || date_trunc('second', now() - g.began_at) as since,
            age(g.xmin) < 1000000
            and coalesce(now() - g.began_at < interval '10 min', true) as is_young,
            row_number() over (order by age(g.xmin) desc, g.began_at) as nth
        from (
            select
                format('pid %s', a.pid) as holder,
                coalesce(a.backend_xmin, a.backend_xid) as xmin, a.xact_start as began_at
            from pg_stat_activity as a
            where num_nonnulls(a.backend_xmin, a.backend_xid) > 0
            and a.pid <> pg_backend_pid()
            union all
            select format('slot %s', r.slot_name), r.xmin, null
            from pg_replication_slots as r
            where r.xmin is not null
            union all
            select format('prepared %s', p.gid), p.transaction, p.prepared
            from pg_prepared_xacts as p
        ) as g
    ) as h
    union all
    select
        'wal', count(*) filter (where k.bytes > 4 * k.most) = 0,
        coalesce(
            min(format('slot %s keeps %s of the log', k.slot_name, pg_size_pretty(k.bytes)))
                filter (where k.nth = 1),
            'no replication slot keeps any of the log'
        ),
        'have who reads the slot catch up, drop the slot, or set max_slot_wal_keep_size, before'
        ' the disk is full and all writing ends'
    from (
        select
            l.slot_name, l.bytes, pg_size_bytes(current_setting('max_wal_size')) as most,
            row_number() over (order by l.bytes desc) as nth
        from (
            select
                r.slot_name,
                pg_wal_lsn_diff(
                    case
                        when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                        else pg_current_wal_lsn()
                    end,
                    r.restart_lsn
                ) as bytes
            from pg_replication_slots as r
            where r.restart_lsn is not null
        ) as l
    ) as k
    union all
    select
        'multixact', mxid_age(d.datminmxid) < 400000000,
        format('the oldest multixact is %s old', mxid_age(d.datminmxid)),
        'let autovacuum finish, or vacuum (freeze) the tables that it has not reached'
    from pg_database as d
    where d.datname = current_database()
    union all
    select
        'multixact_members', m.members < 1000000000,
        format('about %s members of multixacts are kept', m.members),
        'vacuum (freeze) what many sessions lock at once, before 4 billion stop all writing'
    from jobq_private.multixact_members() as m (members)
    union all
    select
        'notifications', pg_notification_queue_usage() < 0.25,
        format('the slowest listener lags by %s %% of the queue',
            round(100 * pg_notification_queue_usage()::numeric)),
        'end the session that listens and stays idle in a transaction'
    union all
    select
        'failover', r.standbys = 0 or s.setting <> '' or pg_is_in_recovery(),
        case
            when r.standbys = 0 then 'no standby follows'
            when s.setting <> '' then 'commits wait for ' || left(s.setting, 200)
            else format('%s follow, and no commit waits for them', r.standbys)
        end,
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses what was'
        ' acknowledged and has not reached the standby'
    from pg_settings as s
    cross join (
        select count(*) as standbys
        from pg_stat_replication as w
        where w.state is distinct from 'backup'
        and not exists (
            select from pg_replication_slots as l
            where l.active_pid = w.pid and l.slot_type = 'logical'
        )
    ) as r
    where s.name = 'synchronous_standby_names'
$$;

revoke all on function jobq_private.server_health from public;

comment on function jobq_private.server_health is
'What in the server threatens the promise, each with its remedy.';

-- Purpose: what is set for a role or for the database, and threatens the promise.
-- Invariant: reads only. Looks where the settings are kept, for another role's session
-- does not show them; of roles, at those that may act as one of jobq's. Raises: nothing.
create or replace function jobq_private.setting_health()
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'role_settings', count(*) = 0,
        coalesce(
            left(string_agg(format('%s for %s', w.setting, w.holder), ', ' order by w.nth), 500),
            'none voids the promise'
        ),
        left(
            string_agg(format('alter %s reset %s', w.holder, w.name), '; ' order by w.nth), 500
        )
    from (
        select
            s.setting, split_part(s.setting, '=', 1) as name,
            case
                when c.setrole = 0 and c.setdatabase <> 0
                then format('database %I', d.datname)
                else concat_ws(
                    ' in database ', 'role ' || coalesce(quote_ident(r.rolname), 'all'),
                    quote_ident(d.datname)
                )
            end as holder,
            row_number() over (order by s.setting, r.rolname, d.datname) as nth
        from pg_db_role_setting as c
        cross join unnest(c.setconfig) as s (setting)
        left join pg_database as d on d.oid = c.setdatabase
        left join pg_roles as r on r.oid = c.setrole
        where s.setting ~*
        '^((synchronous_commit|row_security)=(off|false|no|0)|session_replication_role=replica|default_transaction_read_only=(on|true|yes|1))$'
        and (c.setdatabase = 0 or d.datname = current_database())
        and (
            c.setrole = 0
            or exists (
                select from pg_roles as g
                where g.rolname in (
                    'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator'
                )
                and pg_has_role(c.setrole, g.oid, 'member')
            )
        )
    ) as w
    union all
    select
        'settings', count(*) = 0,
        case when count(*) = 0
            then 'enqueue() goes by what is set'
            else format(
                'enqueue() does not see what is set: %s', string_agg(c.name, ', ' order by c.name)
            )
        end,
        'have maintain() called: the tables were loaded with triggers disabled'
    from jobq_private.constants() as c
    where not c.is_right
    union all
    select
        'connect', not (c.relrowsecurity and has_database_privilege(
            'public', current_database(), 'connect'
        )),
        case when has_database_privilege('public', current_database(), 'connect')
            then 'every role of the server may connect to this database'
            else 'only roles that were granted it may connect to this database'
        end,
        format('revoke connect on database %I from public, and grant it to the tenants',
            current_database())
    from pg_class as c
    where c.oid = 'jobq_private.job'::regclass
$$;

revoke all on function jobq_private.setting_health from public;

comment on function jobq_private.setting_health is
'What is set for a role or the database that threatens the promise, with the remedy.';

-- Purpose: one task of maintain(), repeated while it comes back full.
-- Invariant: 1,000 rows at a time, or what resolve() does in its time; the last time begins within
-- the time given. Partitions are made once, and more of them by the next call, after a commit. What
-- somebody has locked holds up nothing else for longer than a second.
-- Raises: 55P03. Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.upkeep(
    task text, at_most interval, out affected bigint, out has_more boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
    _until constant timestamptz := clock_timestamp() + at_most;
    _done bigint;
begin
    affected := 0;
    loop
        _done := case task
            when 'recovered' then (select count(*) from jobq.recover(1000))
            when 'resolved' then jobq_private.resolve(1000)
            when 'ticked' then (select count(*) from jobq.tick(1000))
            when 'expired' then jobq_private.expire_jobs(1000)
            when 'pruned_jobs' then jobq_private.prune_jobs(1000)
            when 'pruned_keys' then jobq_private.prune(1000)
            when 'pruned_workflows' then jobq_private.prune_workflows(1000)
            when 'rolled_up' then jobq_private.roll_up()
            when 'made_partitions' then jobq_private.make_partitions()
            when 'dropped_partitions' then jobq_private.drop_partitions()
            when 'renewed_settings' then coalesce((
                select jobq_private.write_constants()
                where exists (
                    select from jobq_private.constants() as c where not c.is_right
                )
            ), 0)
        end;
        affected := affected + _done;
        has_more := _done >= case
            when task in ('made_partitions', 'resolved') then 1
            when task = 'dropped_partitions' then 10
            else 1000
        end;
        exit when not has_more or task in ('made_partitions', 'dropped_partitions')
            or clock_timestamp() > _until;
    end loop;
end
$$;

revoke all on function jobq_private.upkeep from public;

comment on function jobq_private.upkeep is
'Does one task of maintain(), again while it comes back full.';

-- Purpose: how many jobs wait in each queue, at a cost that has an end.
-- Invariant: looks at some 50,000 waiting jobs at most, as many of each queue: 10,000 where
-- there are five queues, 100 where there are 500 or more. Of a queue with more, the counts are
-- what count_waiting() has found last, though never less than was seen now. Raises: nothing.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.waiting_counts()
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    is_exact boolean
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    _now constant timestamptz := clock_timestamp();
    _queues constant text[] := array(
        select w.queue from jobq_private.waiting_queue as w order by w.queue
    );
    _ends_at constant integer := greatest(
        100, least(10000, 50000 / greatest(1, cardinality(_queues)))
    );
begin
    return query
    select
        q.queue,
        case when e.is_exact then s.queued else greatest(s.queued, c.queued) end,
        case when e.is_exact then s.scheduled else greatest(s.scheduled, c.scheduled) end,
        case when e.is_exact then s.retrying else greatest(s.retrying, c.retrying) end,
        case when e.is_exact then s.oldest else least(s.oldest, d.due) end,
        e.is_exact
    from unnest(_queues) as q (queue)
    cross join lateral (
        select
            count(*) as seen,
            count(*) filter (where w.state = 'queued' and w.run_at <= _now) as queued,
            count(*) filter (where w.state = 'queued' and w.run_at > _now) as scheduled,
            count(*) filter (where w.state = 'retrying') as retrying,
            min(w.run_at) filter (where w.run_at <= _now) as oldest
        from (
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.lane_id is null
                limit _ends_at + 1
            )
            union all
            (
                select j.state, j.run_at from jobq_private.job as j
                where j.queue = q.queue and j.state in ('queued', 'retrying')
                and j.lane_id between jobq_private.lane_floor(q.queue)
                    and jobq_private.lane_ceiling(q.queue)
                limit _ends_at + 1
            )
        ) as w
    ) as s
    cross join lateral (select s.seen <= _ends_at) as e (is_exact)
    left join jobq_private.waiting_count as c on c.queue = q.queue and not e.is_exact
    left join lateral (
        select n.due
        from jobq.next_due(array[q.queue]) as n (due)
        where not e.is_exact and n.due <= _now and n.due > '0001-01-02 UTC'
    ) as d on true;
end
$$;

revoke all on function jobq_private.waiting_counts from public;

comment on function jobq_private.waiting_counts is
'Counts the jobs that wait in each queue, up to an end.';

-- Purpose: make wider buckets of the history from narrow ones: all that lie between two
-- moments and are over.
-- Invariant: of each bucket at most 20 pairs, the rest as (other). Raises: nothing.
create or replace function jobq_private.widen_history(
    narrow integer, wide integer, since timestamptz, until timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    _width constant interval := wide * interval '1 min';
    _from constant timestamptz := date_bin(_width, since, '2000-01-01 UTC');
    _to constant timestamptz := date_bin(_width, until, '2000-01-01 UTC');
begin
    if _from = _to then
        return;
    end if;
    insert into jobq_private.history (
        minutes, bucket, queue, kind, enqueued, succeeded, failed, dead, cancelled
    )
    select wide, r.bucket, p.queue, p.kind, sum(r.enqueued), sum(r.succeeded),
        sum(r.failed), sum(r.dead), sum(r.cancelled)
    from (
        select date_bin(_width, h.bucket, '2000-01-01 UTC') as bucket, h.queue, h.kind,
            sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
            sum(h.failed) as failed, sum(h.dead) as dead, sum(h.cancelled) as cancelled,
            row_number() over (
                partition by date_bin(_width, h.bucket, '2000-01-01 UTC')
                order by sum(h.enqueued + h.succeeded) desc, h.queue, h.kind
            ) as place
        from jobq_private.history as h
        where h.minutes = narrow and h.bucket >= _from and h.bucket < _to
        group by 1, 2, 3
    ) as r
    cross join lateral (
        select case when r.place <= 20 then r.queue else '(other)' end as queue,
            case when r.place <= 20 then r.kind else '(other)' end as kind
    ) as p
    group by r.bucket, p.queue, p.kind
    on conflict on constraint history_pkey do nothing;

    insert into jobq_private.latency (minutes, bucket, counts)
    select wide, s.bucket, array_agg(s.jobs order by s.n)
    from (
        select date_bin(_width, l.bucket, '2000-01-01 UTC') as bucket, c.n,
            sum(c.jobs) as jobs
        from jobq_private.latency as l
        cross join unnest(l.counts) with ordinality as c (jobs, n)
        where l.minutes = narrow and l.bucket >= _from and l.bucket < _to
        group by 1, 2
    ) as s
    group by s.bucket
    on conflict on constraint latency_pkey do nothing;
end
$$;

revoke all on function jobq_private.widen_history from public;

comment on function jobq_private.widen_history is
'Makes wider buckets of the history from narrow ones that are over.';

-- Purpose: say what threatens the queue's promise, each with its remedy.
-- Invariant: reads only; what is not in order comes first. The client's time, and its
-- release are compared where they are given. Raises: nothing.
-- Argument client_time: the client's clock; null means that it is not compared.
-- Argument release: the client's release: for each function an array of the MD5 sums
-- that its body may have; null means that it is not compared.
-- Returns: what is not in order comes first.
-- Column subject: what was looked at: snapshot, leases, workers, slots, partitions and more,
-- see [reliability](reliability.md).
-- Column is_ok: whether it is in order.
-- Column finding: what was found.
-- Column remedy: what to do.
-- Example: select subject, finding, remedy from jobq.health() where not is_ok;
create or replace function jobq.health(
    client_time timestamptz default null, release jsonb default null
)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select h.subject, h.is_ok, h.finding, case when not h.is_ok then h.remedy end
    from (
        select * from jobq_private.server_health()
        union all
        select * from jobq_private.setting_health()
        union all
        select * from jobq_private.queue_health()
        union all
        select * from jobq_private.client_health(health.client_time, health.release)
    ) as h
    order by h.is_ok, h.subject
$$;

revoke all on function jobq.health from public;
grant execute on function jobq.health to jobq_operator, jobq_reader;

comment on function jobq.health is
'Says what threatens the queue''s promise, each with its remedy: settings, snapshots, leases, workers, partitions; a client''s clock and release too where it gives them.';

-- Purpose: everything that must happen from time to time: recover, tick, prune,
-- partitions, the history of charts, settings that no trigger saw.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row. Each task is repeated while it comes back full, for half a second at most; but
-- partitions are made a day at a time, since completions wait for their locks.
-- A task that fails is undone, and it alone, so here OTHERS is caught; health() says why
-- until it has done its work again. So is one that waits for a lock for a second, or meets the
-- end of statement_timeout: that ends the call, and the next one begins with the others, so
-- that each has its turn however short that is.
-- Raises: nothing.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, expired, resolved, ticked, pruned_jobs, pruned_keys, pruned_workflows, rolled_up,
-- made_partitions, dropped_partitions or renewed_settings.
-- Column affected: how many; null when the task has failed.
-- Column has_more: whether more is to be done at once.
-- Example: select * from jobq.maintain();
create or replace function jobq.maintain()
returns table (task text, affected bigint, has_more boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _task text;
    _tasks text[];
    _at_most constant interval := least(
        interval '0.5 s', nullif(current_setting('statement_timeout')::interval, '0') / 20
    );
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    select array_agg(t.task order by f.failed_at nulls first, t.nth) into _tasks
    from unnest(array[
        'recovered', 'expired', 'resolved', 'ticked', 'pruned_jobs', 'pruned_keys',
        'pruned_workflows', 'rolled_up', 'made_partitions', 'dropped_partitions',
        'renewed_settings'
    ]) with ordinality as t (task, nth)
    left join jobq_private.failed_task as f on f.task = t.task;
    foreach _task in array _tasks loop
        begin
            return query select _task, u.affected, u.has_more
            from jobq_private.upkeep(_task, _at_most) as u;
            delete from jobq_private.failed_task as f where f.task = _task;
        exception
            when query_canceled or others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task, null::bigint, false);
                exit when sqlstate = '57014';
        end;
    end loop;
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, ends jobs that expired, releases what waits for jobs that have ended, fires schedules that are due, prunes jobs, keys, workers, steps and events, keeps the history of charts, makes and drops partitions, and tells enqueue() of settings that no trigger saw; safe for any number of callers.';

-- Purpose: what Prometheus is told about the queue; queue is null for figures of all.
-- Invariant: bounded: of long queues the count of what waits may be a minute old; the dead are read by their index, and the newest few thousand ids. Rates are of the last minute, latency and failures of the last 1,000 jobs that
-- ended within five minutes; where there was none, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, blocked_jobs, expired_leases, oldest_runnable_seconds, lanes,
-- closed_lanes, dlq_size, jobs_enqueued, jobs_succeeded, jobs_dead, jobs_cancelled or
-- attempts_failed, which count up from the first minute on, enqueue_qps, job_latency_p95_seconds or fail_rate.
-- Column queue: null for figures of all queues.
-- Column value: the figure.
-- Example: select * from jobq.metrics();
create or replace function jobq.metrics()
returns table (name text, queue text, value double precision)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
begin
    return query
    select m.name, l.queue, m.value
    from (
        select
            coalesce(w.queue, r.queue) as queue,
            coalesce(w.queued + w.scheduled + w.retrying, 0) as waiting,
            coalesce(r.running, 0) as running,
            coalesce(r.expired, 0) as expired,
            coalesce(extract(epoch from _now - w.oldest), 0) as oldest
        from jobq_private.waiting_counts() as w
        full join (
            select
                j.queue, count(*) as running,
                count(*) filter (where j.lease_expires_at < _now) as expired
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ) as l
    cross join lateral (
        values
        ('queue_backlog', l.waiting::double precision),
        ('running_jobs', l.running),
        ('expired_leases', l.expired),
        ('oldest_runnable_seconds', l.oldest)
    ) as m (name, value);

    return query
    select 'blocked_jobs', j.queue, count(*)::double precision
    from jobq_private.job as j
    where j.state = 'blocked'
    group by j.queue;

    return query
    select m.name, l.queue, m.value
    from jobq_private.lane_counts() as l
    cross join lateral (
        values ('lanes', l.lanes::double precision), ('closed_lanes', l.closed_lanes)
    ) as m (name, value);

    return query
    select 'dlq_size', a.queue, count(*)::double precision
    from jobq_private.job_archive as a
    where a.state = 'dead'
    group by a.queue;

    return query
    select m.name, t.queue, m.value::double precision
    from jobq_private.total as t
    cross join lateral (
        values
        ('jobs_enqueued', t.enqueued), ('jobs_succeeded', t.succeeded),
        ('jobs_dead', t.dead), ('jobs_cancelled', t.cancelled), ('attempts_failed', t.failed)
    ) as m (name, value);

    return query
    select 'enqueue_qps', null, case
        when count(*) < 5000 then count(*) / 60.0
        else 5000 / greatest(0.001, extract(epoch from
            _now - jobq_private.id_time((array_agg(s.job_id))[5000])))
    end::double precision
    from (
        select j.job_id
        from jobq.job as j
        where j.job_id >= jobq_private.id_floor(_now - interval '1 min')
        order by j.job_id desc
        limit 5000
    ) as s;

    return query
    select m.name, null, m.value
    from (
        select
            percentile_cont(0.95) within group (
                order by extract(epoch from r.finished_at - r.created_at)
            ) as latency,
            avg((r.state = 'dead')::integer)::double precision as failed
        from (
            select a.state, a.created_at, a.finished_at
            from jobq_private.job_archive as a
            where a.state in ('succeeded', 'dead')
            and a.finished_at > _now - interval '2 days'
            order by a.job_id desc
            limit 1000
        ) as r
        where r.finished_at > _now - interval '5 min'
    ) as s
    cross join lateral (
        values ('job_latency_p95_seconds', s.latency), ('fail_rate', s.failed)
    ) as m (name, value)
    where m.value is not null;
end
$$;

revoke all on function jobq.metrics from public;
grant execute on function jobq.metrics to jobq_operator, jobq_reader;

comment on function jobq.metrics is
'Returns the queue''s figures for Prometheus: backlog, dead jobs, rates and latency.';

-- Purpose: one row for each queue that has jobs or is declared.
-- Invariant: of the live jobs reads some 50,000 at most, and what runs; of the archive the dead
-- and the last minute.
-- oldest_runnable is how long the job that has waited longest could have run already.
-- Raises: nothing.
-- Column queued: how many wait and could run now.
-- Column scheduled: how many wait for their run_at.
-- Column running: how many run.
-- Column retrying: how many wait for another attempt.
-- Column dead: how many are dead, and not yet redriven or dropped.
-- Column oldest_runnable: for how long the job that has waited longest could have run;
-- null when none waits.
-- Column lanes: how many concurrency keys have work, by priority.
-- Column closed_lanes: how many of these may start none now: full, held, with their rate spent, or
-- with no job due.
-- Column is_exact: whether queued, scheduled and retrying are counts of now. Where more than
-- 10,000 jobs wait in a queue (fewer where there are many queues), they are what maintain()
-- counted last, about a minute ago, or until it has counted, those that were looked at.
-- Column blocked: how many wait for other jobs.
-- Example: select * from jobq.queue_stats();
create or replace function jobq.queue_stats()
returns table (
    queue text,
    queued bigint,
    scheduled bigint,
    running bigint,
    retrying bigint,
    dead bigint,
    oldest_runnable interval,
    finished_last_minute bigint,
    is_paused boolean,
    lanes bigint,
    closed_lanes bigint,
    is_exact boolean,
    blocked bigint
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with live as (
        select
            coalesce(w.queue, r.queue) as queue, w.queued, w.scheduled, r.running,
            w.retrying, greatest(now() - w.oldest, interval '0') as oldest_runnable, w.is_exact
        from jobq_private.waiting_counts() as w
        full join (
            select j.queue, count(*) as running
            from jobq_private.job as j
            where j.state = 'running'
            group by j.queue
        ) as r on r.queue = w.queue
    ),
    held as (
        select j.queue, count(*) as blocked
        from jobq_private.job as j
        where j.state = 'blocked'
        group by j.queue
    ),
    ended as (
        select a.queue, count(*) as dead
        from jobq_private.job_archive as a
        where a.state = 'dead'
        group by a.queue
    ),
    recent as (
        select a.queue, count(*) as finished
        from jobq_private.job_archive as a
        where a.finished_at > now() - interval '1 min'
        group by a.queue
    )
    select
        n.queue, coalesce(l.queued, 0), coalesce(l.scheduled, 0), coalesce(l.running, 0),
        coalesce(l.retrying, 0), coalesce(e.dead, 0), l.oldest_runnable,
        coalesce(r.finished, 0), coalesce(jobq_private.is_paused(n.queue), false),
        coalesce(k.lanes, 0), coalesce(k.closed_lanes, 0), coalesce(l.is_exact, true),
        coalesce(h.blocked, 0)
    from (
        select l.queue from live as l
        union select h.queue from held as h
        union select e.queue from ended as e
        union select r.queue from recent as r
        union select q.queue from jobq_private.queue as q
    ) as n
    left join live as l on l.queue = n.queue
    left join held as h on h.queue = n.queue
    left join ended as e on e.queue = n.queue
    left join recent as r on r.queue = n.queue
    left join jobq_private.lane_counts() as k on k.queue = n.queue
    order by n.queue
$$;

revoke all on function jobq.queue_stats from public;
grant execute on function jobq.queue_stats to jobq_operator, jobq_reader;

comment on function jobq.queue_stats is
'Returns for each queue how many jobs wait, run, retry and are dead, and how long the oldest has waited.';

-- Purpose: whether jobs can be taken in here (queue) and looked up (repo).
-- Invariant: touches what the two need; a server that only reads has no queue.
-- Raises: nothing.
-- Returns: one row.
-- Column queue: ok, or error(reason).
-- Column repo: ok, or error(reason).
-- Example: select * from jobq.ready();
create or replace function jobq.ready()
returns table (queue text, repo text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from jobq_private.job limit 1;
    perform from jobq_private.setting;
    return query select
        case
            when pg_is_in_recovery() or current_setting('transaction_read_only')::boolean
            then 'error(read_only)'
            else 'ok'
        end,
        'ok';
end
$$;

revoke all on function jobq.ready from public;
grant execute on function jobq.ready
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.ready is
'Says whether jobs can be taken in (queue) and looked up (repo): ok, or error(reason).';

-- Purpose: how far what is read here may lie behind the primary.
-- Invariant: reads only. Nothing has been missed where all that came is replayed and the
-- primary is connected; else it is the time since the last commit that was replayed.
-- Raises: nothing.
-- Returns: null on a primary, which lies behind nobody.
-- Example: select jobq.replica_lag();
create or replace function jobq.replica_lag()
returns interval
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select case
        when not pg_is_in_recovery() then null
        when exists (select from pg_stat_wal_receiver as w where w.pid is not null)
        and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
        then interval '0'
        else greatest(clock_timestamp() - pg_last_xact_replay_timestamp(), interval '0')
    end
$$;

revoke all on function jobq.replica_lag from public;
grant execute on function jobq.replica_lag to jobq_operator, jobq_reader;

comment on function jobq.replica_lag is
'Returns how far a standby may lie behind its primary, and null on a primary.';

commit;
