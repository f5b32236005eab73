-- Purpose: lease up to max_jobs runnable jobs to a worker.
-- Invariant: SKIP LOCKED, so callers neither share a job nor wait. Queues in the order given; in a
-- queue by priority, then by the moment at which a job became due (run_at, or when it was stored
-- or came back if that is later), then by id. Raises: 22004, 22023.
-- Never: LIMIT_REACHED, since no single job is asked for.
-- Argument queues: names, in the order in which they are claimed from. A name that ends in *, such as
-- tenant-*, stands for all queues that begin like it, in random order.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now timestamptz;
    _left integer := claim.max_jobs;
    _queue text;
    _turn jobq_private.claim_turn;
begin
    perform jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds, claim.max_limited
    );
    if exists (select from jobq_private.paused_kind) then
        claim.except_kinds := claim.except_kinds || array(
            select p.kind from jobq_private.paused_kind as p
        );
        if '*' = any(claim.except_kinds) then
            return;
        end if;
    end if;
    if strpos(array_to_string(claim.queues, ' '), '*') > 0 then
        claim.queues := jobq_private.match_queues(claim.queues);
    end if;
    foreach _queue in array case
        when cardinality(claim.queues) <= 16 then claim.queues
        else array(select l.queue from jobq_private.on_look(claim.queues, null, true) as l)
    end loop
        exit when _left = 0;
        _turn := jobq_private.on_claim(
            _queue, claim.worker, _left, claim.max_limited, claim.except_kinds,
            _queue = claim.queues[1]
        );
        if _turn.jobs <> '{}' then
            return query select * from unnest(_turn.jobs);
            _left := _left - cardinality(_turn.jobs);
        end if;
        claim.max_limited := claim.max_limited - coalesce(_turn.limited, 0);
        if _turn.found is null then
            _turn.found := jobq_private.find_jobs(_queue, _left, claim.except_kinds);
        end if;
        continue when _turn.found = '{}';
        _now := clock_timestamp();
        return query
        with taken as (
            -- by ctid: nobody else can move what is locked
            update jobq_private.job as j
            set
                state = 'running', previous_state = j.state,
                transition_slot = pg_backend_pid() & 1023, worker = claim.worker,
                attempt = j.attempt + 1, claimed_at = _now, lease_expires_at = _now + j.lease,
                slot = _turn.slot
            where j.ctid = any(_turn.found)
            returning
                j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue, j.max_attempts,
                j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at, j.idempotency_key,
                j.lease, j.delivery_version,
                j.is_awaited or j.slot is not null or j.batch_id is not null as is_awaited,
                j.priority, j.due_at
        )
        select
            t.job_id, t.attempt, t.kind, t.payload, t.metadata, t.queue, t.max_attempts, t.timeout,
            t.lease_expires_at, t.run_at, t.created_at, t.idempotency_key, t.lease,
            t.delivery_version, t.is_awaited
        from taken as t
        -- an expired job has died instead
        where t.lease_expires_at is not null
        order by t.priority desc, t.due_at, t.job_id;
        _left := _left - cardinality(_turn.found);
    end loop;
end
$$;

grant execute on function jobq.claim to jobq_worker;

comment on function jobq.claim is
'Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due time and id.';
