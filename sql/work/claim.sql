-- Purpose: Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due
-- time and id.
-- Invariant: SKIP LOCKED, so callers neither share a job nor wait. Queues in the order given; in a
-- queue by priority, then by the moment at which a job became due (run_at, or when it was stored
-- or came back if that is later), then by id. Keys take turns. Raises: 22004, 22023.
-- Never: LIMIT_REACHED, since no single job is asked for.
-- Argument queues: names, in the order in which they are claimed from. A name that ends in *, such as
-- tenant-*, stands for all queues that begin like it, in random order.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Argument kinds: only jobs of these kinds; null means all.
-- Returns: rows of jobq.claimed_job, none when nothing can run now.
-- Example: select * from jobq.claim('{default,mail}', 'worker-1', 10);
create or replace function jobq.claim(
    queues text[], worker text, max_jobs integer default 1, max_limited integer default null,
    except_kinds text[] default null, kinds text[] default null
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
    _left integer := jobq_private.check_claim(
        claim.queues, claim.worker, claim.max_jobs, claim.except_kinds, claim.max_limited,
        claim.kinds
    );
    _queue text;
    _turn jobq_private.claim_turn;
begin
    claim.except_kinds := nullif(claim.except_kinds || array(
        select p.kind from jobq_private.paused_kind as p
    ), '{}');
    if _left = 0 or '*' = any(claim.except_kinds) then
        return;
    end if;
    foreach _queue in array jobq_private.on_look(jobq_private.match_queues(claim.queues)) loop
        exit when _left = 0;
        _turn := jobq_private.on_claim(
            _queue, claim.worker, _left, claim.max_limited, claim.except_kinds, claim.kinds
        );
        if _turn.jobs <> '{}' then
            return query select * from unnest(_turn.jobs);
            _left := _left - cardinality(_turn.jobs);
        end if;
        claim.max_limited := claim.max_limited - coalesce(_turn.limited, 0);
        _turn.found := coalesce(_turn.found, jobq_private.find_jobs(
            _queue, _left, claim.except_kinds, claim.kinds
        ));
        continue when _turn.found = '{}';
        return query
        select s.*
        from jobq_private.start_jobs(_turn.found, claim.worker, _turn.slots) as s
        where s.lease_expires_at is not null;  -- an expired job has died instead
        _left := _left - cardinality(_turn.found);
    end loop;
end
$$;

grant execute on function jobq.claim to jobq_worker;
