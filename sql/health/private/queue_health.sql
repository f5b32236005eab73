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
