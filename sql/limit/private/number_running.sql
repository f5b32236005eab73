-- Purpose: give places to what runs without, where limits count what runs.
-- Invariant: places from the top of a lane: claims take the lowest, so the two do not meet. A row that
-- somebody has locked is passed over: it ends, or is found by the next call. Raises: nothing.
create or replace function jobq_private.number_running()
returns void
language sql
as $$
    with free as materialized (
        select j.job_id, j.queue, j.lane_id
        from jobq_private.job as j
        where j.job_id = any (array(select u.job_id from jobq_private.uncounted() as u))
        for no key update skip locked
    ),
    numbered as materialized (
        select f.job_id, case when f.lane_id is null then 1 else coalesce((
            select min(o.place) from jobq_private.job as o
            where o.queue = f.queue and o.lane_id = f.lane_id and o.place > 16384
        ), 32768) - row_number() over (partition by f.lane_id order by f.job_id) end as place
        from free as f
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and j.state = 'running' and j.place is null
    and n.place > 0
$$;
