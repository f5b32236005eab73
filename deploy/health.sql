-- Deploy jobq:health to pg
-- Made by sql/snapshot.py from sql/health/: edit that.
begin;
set local role jobq_owner;

-- Purpose: what a client and the database disagree about: the time, and the release.
-- Invariant: reads only; what is null is not compared. release has for each function's
-- name the MD5 sums that its body may have. Raises: nothing.
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
-- Invariant: a bounded number at a call; the key of a live job stays. Raises: nothing.
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

-- Purpose: queues whose jobs have been due for a minute while no live worker serves them.
-- Invariant: reads only; a probe of job_ready_idx for each queue and priority in use.
-- Raises: nothing.
create or replace view jobq_private.unserved_queue as
with recursive used as (
    (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying')
        order by j.queue
        limit 1
    )
    union all
    select (
        select j.queue
        from jobq_private.job as j
        where j.state in ('queued', 'retrying') and j.queue > u.queue
        order by j.queue
        limit 1
    )
    from used as u
    where u.queue is not null
)
select u.queue
from used as u
where u.queue is not null
and not exists (
    select from jobq_private.worker as w
    where u.queue = any(w.queues) and w.seen_at > now() - interval '1 min'
)
and jobq.next_due(array[u.queue]) < now() - interval '1 min';

revoke all on table jobq_private.unserved_queue from public;

comment on view jobq_private.unserved_queue is
'Queues whose jobs have been due for a minute while no live worker serves them.';

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
            left('no live worker serves ' || string_agg(u.queue, ', ' order by u.queue), 500),
            'every queue with due jobs has a live worker'
        ),
        'start a worker with these queues, or call work() where their kinds are functions'
    from jobq_private.unserved_queue as u
    union all
    select
        'maintenance', count(*) = 0,
        coalesce(
            left(string_agg(format(
                '%s failed %s times, last at %s: %s %s',
                f.task, f.failures, f.failed_at, f.sqlstate, f.error
            ), '; ' order by f.task), 500),
            'no task has failed'
        ),
        'mend what the error names; maintain() tries again at each call'
    from jobq_private.failed_task as f
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
                format('pid %s', a.pid) as holder, a.backend_xmin as xmin,
                a.xact_start as began_at
            from pg_stat_activity as a
            where a.backend_xmin is not null and a.pid <> pg_backend_pid()
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
        '^(synchronous_commit=(off|false|no|0)|session_replication_role=replica)$'
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
-- Invariant: 1,000 rows at a time; the last time begins within the time given.
-- Raises: JQ004. Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.upkeep(
    task text, at_most interval, out affected bigint, out has_more boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _until constant timestamptz := clock_timestamp() + at_most;
    _done bigint;
begin
    affected := 0;
    loop
        _done := case task
            when 'recovered' then (select count(*) from jobq.recover(1000))
            when 'ticked' then (select count(*) from jobq.tick(1000))
            when 'pruned_keys' then jobq_private.prune(1000)
            when 'pruned_workflows' then jobq_private.prune_workflows(1000)
            when 'made_partitions' then jobq_private.make_partitions()
            when 'dropped_partitions' then jobq_private.drop_partitions()
        end;
        affected := affected + _done;
        has_more := _done >= 1000;
        exit when not has_more or clock_timestamp() > _until;
    end loop;
end
$$;

revoke all on function jobq_private.upkeep from public;

comment on function jobq_private.upkeep is
'Does one task of maintain(), again while it comes back full.';

-- Purpose: say what threatens the queue's promise, each with its remedy.
-- Invariant: reads only; what is not in order comes first. The client's time, and its
-- release are compared where they are given. Raises: nothing.
-- Argument client_time: the client's clock; null means that it is not compared.
-- Argument release: the client's release: for each function an array of the MD5 sums
-- that its body may have; null means that it is not compared.
-- Returns: what is not in order comes first.
-- Column subject: what was looked at: snapshot, leases, workers, partitions and more,
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
-- partitions.
-- Invariant: any number of callers, one does the work and the others return at once
-- with no row. Each task is repeated while it comes back full, for half a second at most.
-- A task that fails is undone, and it alone, so here OTHERS is caught; health() says why
-- until it has done its work again.
-- Raises: nothing.
-- Never: DEDUP_CONFLICT.
-- Returns: no row when somebody else is at it.
-- Column task: recovered, ticked, pruned_keys, pruned_workflows, made_partitions or
-- dropped_partitions.
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
begin
    if not pg_try_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0) then
        return;
    end if;
    foreach _task in array array[
        'recovered', 'ticked', 'pruned_keys', 'pruned_workflows', 'made_partitions',
        'dropped_partitions'
    ] loop
        begin
            return query select _task, u.affected, u.has_more
            from jobq_private.upkeep(_task, interval '0.5 s') as u;
            delete from jobq_private.failed_task as f where f.task = _task;
        exception
            when others then
                insert into jobq_private.failed_task as f (task, sqlstate, error)
                values (_task, sqlstate, left(sqlerrm, 512))
                on conflict on constraint failed_task_pkey do update
                set sqlstate = excluded.sqlstate, error = excluded.error,
                    failed_at = now(), failures = f.failures + 1;
                return query values (_task, null::bigint, false);
        end;
    end loop;
end
$$;

revoke all on function jobq.maintain from public;
grant execute on function jobq.maintain to jobq_worker, jobq_operator;

comment on function jobq.maintain is
'Recovers expired leases, fires schedules that are due, prunes keys, workers, steps and events, makes and drops partitions; safe for any number of callers.';

-- Purpose: what Prometheus is told about the queue; queue is null for figures of all.
-- Invariant: bounded in the archive: the dead by their index, and the newest few thousand
-- ids. Rates are of the last minute, latency and failures of the last 1,000 jobs that
-- ended within five minutes; where there was none, there is no row. Raises: nothing.
-- Column name: queue_backlog, running_jobs, expired_leases, oldest_runnable_seconds, lanes,
-- closed_lanes, dlq_size, enqueue_qps, job_latency_p95_seconds or fail_rate.
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
            j.queue,
            count(*) filter (where j.state <> 'running') as waiting,
            count(*) filter (where j.state = 'running') as running,
            count(*) filter (where j.lease_expires_at < _now) as expired,
            coalesce(extract(epoch from _now - min(j.run_at) filter (
                where j.state <> 'running' and j.run_at <= _now
            )), 0) as oldest
        from jobq_private.job as j
        group by j.queue
    ) as l
    cross join lateral (
        values
        ('queue_backlog', l.waiting::double precision),
        ('running_jobs', l.running),
        ('expired_leases', l.expired),
        ('oldest_runnable_seconds', l.oldest)
    ) as m (name, value);

    return query
    select m.name, l.queue, m.value
    from (
        select
            l.queue, count(*) as lanes, count(*) filter (where l.state <> 'open') as closed
        from jobq_private.lane as l
        group by l.queue
    ) as l
    cross join lateral (
        values ('lanes', l.lanes::double precision), ('closed_lanes', l.closed)
    ) as m (name, value);

    return query
    select 'dlq_size', a.queue, count(*)::double precision
    from jobq_private.job_archive as a
    where a.state = 'dead'
    group by a.queue;

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
-- Invariant: reads the live table once, and of the archive the dead and the last minute.
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
    closed_lanes bigint
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    with live as (
        select
            j.queue,
            count(*) filter (where j.state = 'queued' and j.run_at <= now()) as queued,
            count(*) filter (where j.state = 'queued' and j.run_at > now()) as scheduled,
            count(*) filter (where j.state = 'running') as running,
            count(*) filter (where j.state = 'retrying') as retrying,
            now() - min(j.run_at) filter (
                where j.state <> 'running' and j.run_at <= now()
            ) as oldest_runnable
        from jobq_private.job as j
        group by j.queue
    ),
    ended as (
        select a.queue, count(*) as dead
        from jobq_private.job_archive as a
        where a.state = 'dead'
        group by a.queue
    ),
    keyed as (
        select
            l.queue, count(*) as lanes, count(*) filter (where l.state <> 'open') as closed
        from jobq_private.lane as l
        group by l.queue
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
        coalesce(k.lanes, 0), coalesce(k.closed, 0)
    from (
        select l.queue from live as l
        union select e.queue from ended as e
        union select r.queue from recent as r
        union select q.queue from jobq_private.queue as q
    ) as n
    left join live as l on l.queue = n.queue
    left join ended as e on e.queue = n.queue
    left join recent as r on r.queue = n.queue
    left join keyed as k on k.queue = n.queue
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

commit;
