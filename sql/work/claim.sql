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
    _turn constant jobq_private.claim_turn := jobq_private.take_turns(
        claim.queues, claim.worker, claim.max_jobs, claim.max_limited, claim.except_kinds,
        claim.kinds
    );
begin
    if _turn.jobs <> '{}' then
        return query select j.* from unnest(_turn.jobs) as j;
    end if;
    return query
    select s.*
    from jobq_private.start_jobs(_turn.found, claim.worker, _turn.slots) as s;
end
$$;

grant execute on function jobq.claim to jobq_worker;
