-- Purpose: of jobs that a claim has locked, those that the limits of their kinds, and with queue those of
-- the queue, let start; and the lanes of the others, with the limits of kinds that they are to wait for.
-- Invariant: what a kind may start is counted after its limit's lock was had; the queue's is the
-- caller's. Where another holds it, the lane stays open. None passes one before it in its lane: a lane waits
-- for the limit of the first that may not start. A budget into which the next job does not fit lets no other
-- start, so that cheap jobs do not overtake a dear one for ever. Raises: nothing.
create or replace function jobq_private.pass_limits(
    queue text, now timestamptz, inout jobs tid[], inout places smallint[],
    out barred uuid[], out limits uuid[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _held uuid[];
begin
    _held := array(
        select g.limit_id
        from jobq_private.limit_state as g
        where g.kind = any (array(
            select j.kind from jobq_private.job as j where j.ctid = any (pass_limits.jobs)
        ))
        and g.queue is null
        for update skip locked
    );
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.lane_id, g.limit_id, g.kind, c.cost,
            row_number() over k as nth, sum(c.cost) over k as cost_of_kind,
            sum(c.cost) over (order by u.n) as cost_of_queue
        from unnest(pass_limits.jobs, pass_limits.places)
            with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        left join jobq_private.limit_state as g on g.kind = j.kind and g.queue is null
        cross join lateral (select coalesce(j.cost, 1)) as c (cost)
        window k as (partition by g.limit_id order by u.n)
    ),
    room as materialized (
        select d.limit_id, r.*
        from (
            select distinct c.limit_id, c.kind from candidate as c where c.limit_id is not null
        ) as d
        cross join lateral jobq_private.limit_room(null, d.kind, pass_limits.now) as r
    ),
    -- null is for any number
    judged as materialized (
        select
            c.*, k.budget_left as left_of_kind, k.budget_end as end_of_kind,
            q.budget_left as left_of_queue, q.budget_end as end_of_queue,
            c.limit_id is null or c.limit_id = any (_held)
            and coalesce(k.room > 0, true) and coalesce(c.nth <= k.slots, true)
            and coalesce(c.cost_of_kind - c.cost < k.rate_left, true)
            and coalesce(c.cost_of_kind <= k.budget_left, true) as fits_kind,
            coalesce(q.room > 0, true)
            and coalesce(c.cost_of_queue - c.cost < q.rate_left, true)
            and coalesce(c.cost_of_queue <= q.budget_left, true) as fits_queue
        from candidate as c
        left join room as k on k.limit_id = c.limit_id
        left join jobq_private.limit_room(pass_limits.queue, null, pass_limits.now) as q
            on pass_limits.queue is not null
    ),
    passed as materialized (
        select
            j.*, bool_and(j.fits_kind and j.fits_queue) over (partition by j.lane_id order by j.n)
            as may_pass
        from judged as j
    ),
    counted as materialized (
        select
            p.*,
            coalesce(sum(p.cost) filter (where p.may_pass) over k, 0) + p.cost as next_of_kind,
            coalesce(sum(p.cost) filter (where p.may_pass) over (order by p.n), 0) + p.cost
            as next_of_queue
        from passed as p
        window k as (partition by p.limit_id order by p.n)
    ),
    stopped as (
        select distinct on (p.lane_id) p.lane_id, p.limit_id, p.fits_kind
        from passed as p
        where not p.may_pass
        order by p.lane_id, p.n
    ),
    closed as (
        select s.* from stopped as s where not s.fits_kind and s.limit_id = any (_held)
    ),
    filled as (
        update jobq_private.limit_state as g
        set full_until = f.until
        from (
            select c.limit_id, c.end_of_kind as until
            from counted as c
            where not c.may_pass and c.next_of_kind > c.left_of_kind
            union
            select jobq_private.limit_id(pass_limits.queue, null), c.end_of_queue
            from counted as c
            where not c.may_pass and c.next_of_queue > c.left_of_queue
        ) as f
        where g.limit_id = f.limit_id and (g.queue is not null or g.limit_id = any (_held))
    )
    select
        coalesce((select array_agg(p.job order by p.n) from passed as p where p.may_pass), '{}'),
        (select array_agg(p.place order by p.n) from passed as p where p.may_pass),
        coalesce((select array_agg(c.lane_id order by c.lane_id) from closed as c), '{}'),
        coalesce((select array_agg(c.limit_id order by c.lane_id) from closed as c), '{}')
    into pass_limits.jobs, pass_limits.places, pass_limits.barred, pass_limits.limits;
end
$$;
