-- Purpose: after a change of what a queue, its keys or a kind of its may: give places to what runs
-- without, and open the lanes that are closed.
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
    perform pg_advisory_xact_lock(_limits, hashtext(queue) & 255);
    with numbered as materialized (
        select j.job_id, case when j.lane_id is null then 1 else coalesce((
            select max(o.place) from jobq_private.job as o
            where o.queue = j.queue and o.lane_id = j.lane_id and o.place is not null
        ), 0) + row_number() over (partition by j.lane_id order by j.job_id) end as place
        from jobq_private.job as j
        cross join lateral jobq_private.lane_rule(j.queue, j.concurrency_key) as r
        left join jobq_private.queue as q on q.queue = j.queue
        left join jobq_private.kind as k on k.kind = j.kind
        where j.queue = limits_changed.queue
        and j.state = 'running'
        and j.place is null
        and num_nonnulls(r.max_running, q.max_running, k.max_running) > 0
    )
    update jobq_private.job as j
    set place = n.place
    from numbered as n
    where j.job_id = n.job_id and n.place <= 32767;

    update jobq_private.lane as l
    set state = 'open', open_at = '-infinity', gate_id = null
    where l.queue = limits_changed.queue and l.state <> 'open';
    perform jobq_private.wake(array[limits_changed.queue]);
end
$$;

revoke all on function jobq_private.limits_changed from public;

comment on function jobq_private.limits_changed is
'Has a queue''s lanes follow a change of its limits.';
