-- Purpose: Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due
-- time and id.
-- Invariant: SKIP LOCKED, so callers neither share a job nor wait. The due time is run_at, or
-- when the job was stored or came back if that is later. Keys take turns. Raises: 22004, 22023.
-- Never: LIMIT_REACHED, since no single job is asked for.
-- Argument queues: names, in the order in which they are claimed from. A name that ends in *,
-- such as tenant-*, stands for all queues that begin like it, in random order.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Argument kinds: only jobs of these kinds; null means all.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null, kinds text[] default null
)
returns setof jobq.claimed_job language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _left integer := claim.max_jobs;
    _plan jobq_private.claim_plan;
    _turn jobq_private.claim_turn;
    _queue text;
begin
    perform jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds, claim.max_limited,
        claim.kinds
    );
    if _left = 0 then
        return;
    end if;
    _plan := jobq_private.on_claim(
        jobq_private.match_queues(claim.queues), claim.except_kinds
    );
    foreach _queue in array _plan.queues loop
        exit when _left = 0 or '*' = any(_plan.except_kinds);
        if _queue = any(_plan.special) then
            _turn := jobq_private.on_queue(
                _queue, claim.worker, _left, claim.max_limited, _plan.except_kinds, claim.kinds
            );
            return query select j.* from unnest(_turn.jobs) as j;
            _left := _left - cardinality(_turn.jobs);
            claim.max_limited := claim.max_limited - _turn.limited;
        else
            _turn.found := jobq_private.find_jobs(
                _queue, _left, _plan.except_kinds, claim.kinds
            );
        end if;
        if _turn.found <> '{}' then
            return query
            select s.* from jobq_private.start_jobs(_turn.found, claim.worker) as s;
            _left := _left - cardinality(_turn.found);
        end if;
    end loop;
end
$$;
grant execute on function jobq.claim to jobq_worker;
