-- Purpose: after a change of what the keys of a queue may: give places to what runs without,
-- and open the lanes that were full.
-- Invariant: the exclusive lock waits for the claims that looked at the old limit, and keeps
-- new ones off until the commit; so none starts unseen, and no lane stays closed. Raises:
-- nothing.
create or replace function jobq_private.limits_changed(queue text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
begin
    perform pg_advisory_xact_lock(_limits, hashtext(queue));
    with numbered as materialized (
        select j.job_id, coalesce((
            select max(o.place) from jobq_private.job as o
            where o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) as place
        from jobq_private.job as j
        cross join lateral jobq_private.lane_limit(j.queue, j.concurrency_key)
            as m (max_running)
        where j.queue = limits_changed.queue
        and j.state = 'running'
        and j.lane_id is not null
        and j.place is null
        and m.max_running is not null
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and n.place <= 32767;

    update jobq_private.lane as l
    set state = 'open'
    where l.queue = limits_changed.queue and l.state = 'full';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';
