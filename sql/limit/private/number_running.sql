-- Purpose: give places to what runs without in a queue (null for all), where limits count what runs.
-- Invariant: the caller keeps others from starting jobs there; what ends meanwhile gets no place.
-- Raises: nothing.
create or replace function jobq_private.number_running(queue text)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with numbered as materialized (
        select j.job_id, case when j.lane_id is null then 1 else coalesce((
            select max(o.place) from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) end as place
        from jobq_private.uncounted(number_running.queue) as u (job_id)
        join jobq_private.job as j on j.job_id = u.job_id
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and j.state = 'running' and j.place is null
    and n.place <= 32767
$$;

revoke all on function jobq_private.number_running from public;

comment on function jobq_private.number_running is
'Gives places to what runs without in a queue, where limits count what runs.';
