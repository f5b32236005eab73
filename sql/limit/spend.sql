-- Purpose: report the actual cost of a running attempt, instead of the cost charged at
-- its start: its rates and budgets are corrected, up or down.
-- Invariant: only the attempt that holds the lease. The last report counts. Waits for a transaction that starts jobs
-- under the same limits. Raises: 22004, 22023, JQ001, JQ003.
-- Argument cost: from 0 to 10^12.
-- Returns: nothing.
-- Example: select jobq.spend(:'running', 1, 4500);
create or replace function jobq.spend(job_id uuid, attempt integer, cost numeric)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq_private.job;
    _charged numeric;
begin
    if spend.cost is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'cost');
    elsif not spend.cost between 0 and 1000000000000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'cost must be a number from 0 to 1000000000000'
        );
    end if;
    select j.* into _job
    from jobq_private.job as j
    where j.job_id = spend.job_id
    and j.attempt = spend.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(spend.job_id, spend.attempt);
    end if;
    _charged := coalesce(
        (
            select r.cost
            from jobq_private.reported_cost as r
            where r.job_id = spend.job_id and r.attempt = spend.attempt
        ),
        _job.cost, 1
    );
    insert into jobq_private.reported_cost as r (job_id, attempt, cost)
    values (spend.job_id, spend.attempt, spend.cost)
    on conflict on constraint reported_cost_pkey do update
    set attempt = excluded.attempt, cost = excluded.cost;
    if spend.cost <> _charged then
        perform jobq_private.correct_charge(_job, _charged, spend.cost - _charged);
    end if;
end
$$;

grant execute on function jobq.spend to jobq_worker;

comment on function jobq.spend is
'Reports what a running attempt has really cost, and corrects its rates and budgets by it.';
