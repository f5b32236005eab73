-- Purpose: Reports what a running attempt has really cost, and corrects its rates and
-- budgets, up or down.
-- Invariant: only the attempt that holds the lease. The last report counts. Waits for a
-- transaction that starts jobs under the same limits. Raises: 22004, 22023, JQ001, JQ003.
-- Argument cost: from 0 to 10^12.
-- Returns: nothing.
-- Example: select jobq.spend(:'running', 1, 4500);
create or replace function jobq.spend(job_id uuid, attempt integer, cost numeric)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $$
declare
    _job jobq_private.job;
    _charged numeric;
begin
    perform jobq_private.check_given('cost', num_nulls(spend.cost));
    perform jobq_private.check_argument(case
        when not spend.cost between 0 and 1000000000000
        then 'cost must be a number from 0 to 1000000000000'
    end);
    _job := jobq_private.lock_attempt(spend.job_id, spend.attempt);
    _charged := coalesce(_job.reported_cost, _job.cost, 1);
    update jobq_private.job as j set reported_cost = spend.cost where j.job_id = spend.job_id;
    if spend.cost = _charged then
        return;
    end if;
    perform jobq_private.charge(
        array[spend.job_id], true,
        jobq_private.lock_limits(array(select l from jobq_private.job_limits(_job) as l), true),
        spend.cost - _charged, _charged
    );
    if spend.cost < _charged then
        perform jobq_private.open_again(array(
            select w from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.state <> 'open'
        ));
        perform jobq_private.wake(_job.queue || array(
            select distinct w.queue from jobq_private.waiting_key as w where w.full_kind = _job.kind
        ));
    end if;
end
$$;
grant execute on function jobq.spend to jobq_worker;
