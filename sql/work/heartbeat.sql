-- Purpose: Extends the leases of a worker's jobs, and returns which are lost and which are to be
-- cancelled.
-- Invariant: a job that another transaction has locked does not hold up the others. No lease is
-- extended past claimed_at + timeout + lease. Raises: 22004, 22023.
-- Argument queues: the queues from which the worker claims, for explain() and jobq.worker; null
-- keeps them.
-- Argument except_kinds: kinds that the worker has seen and has no handler for, for explain()
-- and health(); null keeps them.
-- Argument release: release of the worker's program, 1 to 200 characters, shown in the console
-- and jobq.worker; null keeps it.
-- Argument stuck: how many slots of the worker are occupied by hanging handlers, for explain()
-- and health(); null keeps it.
-- Returns: a row for each job, in the order given.
-- Column outcome: extended; cancel_requested (also extended); held (another transaction has
-- locked the job: call again); or lost.
-- Example: select * from jobq.heartbeat('worker-1', array[:'running'::uuid], '{1}', '{default}');
create or replace function jobq.heartbeat(
    worker text, job_ids uuid[], attempts integer[], queues text[] default null,
    except_kinds text[] default null, release text default null, stuck integer default null
)
returns table (job_id uuid, attempt integer, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    _locked uuid[];
begin
    perform jobq_private.check_claim(
        worker => heartbeat.worker, except_kinds => heartbeat.except_kinds
    );
    perform jobq_private.check_argument(case
        when length(heartbeat.release) not between 1 and 200 or heartbeat.stuck < 0
        then 'release must have 1 to 200 characters, and stuck must not be negative'
    end);
    perform jobq_private.check_attempts(heartbeat.job_ids, heartbeat.attempts);
    insert into jobq_private.worker as w (worker, queues, except_kinds, release, stuck)
    values (
        heartbeat.worker, coalesce(heartbeat.queues, '{}'),
        coalesce(heartbeat.except_kinds, '{}'), heartbeat.release, coalesce(heartbeat.stuck, 0)
    )
    on conflict on constraint worker_pkey do update
    set
        seen_at = now(), queues = coalesce(heartbeat.queues, w.queues),
        except_kinds = coalesce(heartbeat.except_kinds, w.except_kinds),
        release = coalesce(heartbeat.release, w.release),
        stuck = coalesce(heartbeat.stuck, w.stuck);

    _locked := jobq_private.lock_attempts(heartbeat.job_ids, heartbeat.attempts);
    return query
    with extended as (
        update jobq_private.job as j
        set heartbeat_at = clock_timestamp()  -- job_transition() extends the lease
        where j.job_id = any(_locked)
        returning j.job_id, j.attempt, j.cancel_requested_at
    )
    select f.job_id, f.attempt, case
        when e.job_id is null then jobq_private.held_or_lost(f.job_id, f.attempt)
        when e.cancel_requested_at is not null then 'cancel_requested'
        else 'extended'
    end
    from unnest(heartbeat.job_ids, heartbeat.attempts)
        with ordinality as f (job_id, attempt, n)
    left join extended as e on e.job_id = f.job_id and e.attempt = f.attempt
    order by f.n;
end
$$;
grant execute on function jobq.heartbeat to jobq_worker;
