-- Purpose: Takes waiting jobs out of a shard for its successor. Only for jobq_owner.
-- Invariant: a job leaves `job` in the transaction that stores it in moved_job, so nobody claims
-- it, and it is returned again until confirm_jobs(). Jobs stay that others may refer to or that
-- refer to others (parents, children, batches, schedules, steps, signals, dedup keys), jobs for
-- whose end a client waits, and jobs whose key a dead job holds. Raises: 22004, 22023.
-- Argument max_jobs: the most jobs to return.
-- Column job: the job, for receive_jobs().
-- Returns: the jobs that the successor has to receive; none if all that can move have moved, or
-- there is no successor.
-- Example: select job_id from jobq_internal.send_jobs(100);
create or replace function jobq_internal.send_jobs(max_jobs integer)
returns table (job_id uuid, job jsonb) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _endings jobq_private.ending[];
    _awaited constant integer[] := array(
        select l.objid::integer
        from pg_locks as l
        where l.locktype = 'advisory'
        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
        and l.classid::integer = jobq_private.lock_class('ending')
    );
    _successor constant integer := (
        select s.successor from jobq_private.shard as s where s.is_own and s.removed_at is null
    );
begin
    perform jobq_private.check_count('max_jobs', send_jobs.max_jobs, 1, 1000);
    if _successor is not null and not exists (select from jobq_private.moved_job as m where m.job is not null) then
        with waiting as materialized (
            select w.job_id
            from (
                select j.job_id, j.ctid
                from jobq_private.job as j
                where j.state in ('queued', 'retrying')
                and not j.is_awaited
                and num_nonnulls(j.batch_id, j.schedule_id, j.dedup_key, j.cancel_requested_at) = 0
                and not exists (select from jobq_private.edge as e where e.child = j.job_id)
                and not exists (select from jobq_private.edge as e where e.parent = j.job_id)
                and not exists (select from jobq_private.step as t where t.job_id = j.job_id)
                and not exists (select from jobq_private.waiter as w where w.job_id = j.job_id)
                and not exists (select from jobq_private.stream_chunk as c where c.job_id = j.job_id)
                and not exists (select from jobq_private.node as n where n.job_id = j.job_id)
                and not exists (select from jobq_private.pending as p where p.id = j.job_id)
                and j.job_id not in (select v.job_id from jobq_private.event as v)
                and not exists (
                    select from jobq_private.limit_hold as h
                    where h.dead_job_id is not null
                    and h.queue = j.queue and h.concurrency_key = j.concurrency_key
                )
                and hashtext(j.job_id::text) & 1023 <> all(_awaited)
                offset 0
            ) as w
            -- Not a job that has run since this snapshot: it may have steps by now.
            where jobq_private.lock_job(w.ctid)
            limit send_jobs.max_jobs
        ),
        gone as (
            delete from jobq_private.job as j
            using waiting as w
            where j.job_id = w.job_id
            returning j.*
        ),
        stored as (
            insert into jobq_private.moved_job as m (job_id, moves, shard_id, job)
            select g.job_id, 1, _successor, to_jsonb(g) || jsonb_build_object(
                'key_created_at', k.created_at,
                -- The successor postpones it itself if its endpoint is paused.
                'run_at', coalesce(p.run_at, g.run_at)
            )
            from gone as g
            left join jobq_private.idempotency_key as k
                on k.kind = g.kind and k.idempotency_key = g.idempotency_key and k.job_id = g.job_id
            left join jobq_private.parked_job as p
                on p.job_id = g.job_id and g.run_at = jobq_private.parked_until()
            on conflict on constraint moved_job_pkey do update
            set moves = m.moves + 1, shard_id = excluded.shard_id, job = excluded.job,
                moved_at = excluded.moved_at
        )
        select array_agg(row(
            g.job_id, g.attempt, 'cancelled', g.queue, g.kind, g.key_id,
            g.concurrency_key, g.slot, false, null, false
        )::jobq_private.ending)
        into _endings
        from gone as g
        where g.key_id is not null;
        if _endings is not null then
            -- A job left its key, as if it had been cancelled.
            perform jobq_private.on_end(_endings);
        end if;
    end if;
    return query
    select m.job_id, m.job || jsonb_build_object('moves', m.moves)
    from jobq_private.moved_job as m
    where m.job is not null
    order by m.job_id
    limit send_jobs.max_jobs;
end
$$;
