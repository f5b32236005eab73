-- Purpose: of jobs of a lane, in their order, those whose cost its rate lets start and its budget has
-- left; null for any.
-- Invariant: the rate lets a job start while a unit is left, the budget while the whole cost is.
-- Raises: nothing.
create or replace function jobq_private.affordable(
    jobs tid[], rate_left integer, budget_left numeric
)
returns tid[]
language plpgsql
stable
as $$
begin
    if budget_left is null and (rate_left is null or cardinality(jobs) <= 1) then
        return jobs;
    end if;
    return array(
        select c.job
        from (
            select
                u.job, u.n, coalesce(j.cost, 1) as cost,
                sum(coalesce(j.cost, 1)) over (order by u.n) as total
            from unnest(affordable.jobs) with ordinality as u (job, n)
            join jobq_private.job as j on j.ctid = u.job
        ) as c
        where coalesce(c.total - c.cost < rate_left, true)
        and coalesce(c.total <= budget_left, true)
        order by c.n
    );
end
$$;
