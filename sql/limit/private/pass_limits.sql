-- Purpose: return those of a claim's locked jobs that the limits of their kinds and of the queue
-- allow to start. The keys of the others wait for the limit of their kind (closed counts them);
-- jobs in a wrong key are moved.
-- Invariant: running jobs of a kind are counted after its limit was locked; the caller has locked
-- the queue's. No job overtakes another of its key. A job that does not fit into a budget makes
-- others wait.
create or replace function jobq_private.pass_limits(
    queue text, inout jobs tid[], inout slots smallint[], look jobq_private.queue_look,
    out closed bigint
)
language plpgsql as $$
declare
    _now constant timestamptz := clock_timestamp();
    _scopes jobq_private.scope[];
    _locked uuid[];
begin
    select cardinality(pass_limits.jobs) - cardinality(m.jobs), m.jobs, m.slots
    into pass_limits.closed, pass_limits.jobs, pass_limits.slots
    from jobq_private.move_jobs(jobs, slots) as m;
    if jobs = '{}' then
        return;
    end if;
    _scopes := array(
        select distinct l from jobq_private.job as j
        cross join lateral jobq_private.job_limits(j) as l
        where j.ctid = any(jobs) and num_nonnulls(l.queue, l.concurrency_key) = 0
    );
    _locked := jobq_private.lock_limits(_scopes, false);
    if look.is_limited then
        _locked := _locked || jobq_private.limit_id(pass_limits.queue, null, null);
        _scopes := _scopes
            || row(_locked[cardinality(_locked)], pass_limits.queue, null, null)::jobq_private.scope;
    end if;
    with allowed as materialized (
        select r.*, r.limit_id = any(_locked) as is_locked
        from jobq_private.check_limits(_scopes, _now) as r
    ),
    candidate as materialized (
        select
            u.job, u.slot, u.n, j.key_id, j.priority, j.run_at, r.limit_id, r.kind, r.is_locked,
            r.budget_left, c.cost,
            r.limit_id is null or r.is_locked
            and coalesce(r.max_starts > 0, true)
            and coalesce(row_number() over l <= r.slots, true)
            and coalesce(sum(c.cost) over l - c.cost < r.rate_left, true)
            and coalesce(sum(c.cost) over l <= r.budget_left, true) as fits
        from unnest(pass_limits.jobs, pass_limits.slots) with ordinality as u (job, slot, n)
        join jobq_private.job as j on j.ctid = u.job
        cross join lateral (select coalesce(j.cost, 1) as cost) as c
        left join allowed as r on r.kind is null or r.kind = j.kind
        window l as (partition by r.limit_id order by u.n)
    ),
    passed as materialized (
        select c.*, bool_and(c.fits) over (partition by c.key_id order by c.n) as may_pass
        from candidate as c
    ),
    filled as (
        update jobq_private.limit_state as g
        set next_cost = c.cost, next_until = clock_timestamp() + interval '10 s'
        from (
            select p.*, sum(p.cost) filter (where p.may_pass) over l as passed
            from passed as p
            window l as (partition by p.limit_id order by p.n)
        ) as c
        where g.limit_id = c.limit_id and c.is_locked and not c.may_pass
        and coalesce(c.passed, 0) + c.cost > c.budget_left
    ),
    shut as (
        update jobq_private.waiting_key as w
        -- only a job that goes before the one that waits opens the key
        set state = 'full', full_kind = s.kind, open_at = s.run_at
        from (
            select distinct on (p.key_id) p.*
            from passed as p
            where not p.may_pass and not p.fits
            order by p.key_id, p.n, p.kind nulls last
        ) as s
        cross join lateral (  -- not in an array, for which PostgreSQL would read the whole table
            select o.ctid from jobq_private.waiting_key as o
            where o.key_id = s.key_id and o.queue = pass_limits.queue and o.priority = s.priority
            for update skip locked
        ) as o
        where s.kind is not null and s.is_locked and w.ctid = o.ctid
        returning w.key_id
    )
    select coalesce(array_agg(p.job order by p.n), '{}'), array_agg(p.slot order by p.n),
        pass_limits.closed + (select count(distinct s.key_id) from shut as s)
    into pass_limits.jobs, pass_limits.slots, pass_limits.closed
    from (select distinct p.job, p.slot, p.n from passed as p where p.may_pass) as p;
end
$$;
