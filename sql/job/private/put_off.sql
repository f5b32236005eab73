-- Purpose: a job that has not begun takes the payload of a later call, and waits on from then: by
-- dedup_period or until the call's run_at, but no longer in all than dedup_max_wait.
-- Invariant: a job that has begun is left as it is; one that is blocked waits for its others as
-- well. Raises: nothing.
create or replace function jobq_private.put_off(job_id uuid, job jobq_private.new_job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _lane record;
begin
    update jobq_private.job as j
    set
        payload = coalesce(job.payload, '{}'),
        run_at = least(
            coalesce(job.run_at, now() + s.dedup_period), j.created_at + s.dedup_max_wait
        )
    from jobq_private.settings_for(job.kind, job.queue) as s
    where j.job_id = put_off.job_id and j.state in ('queued', 'blocked') and j.attempt = 0
    returning case when j.state = 'queued' then j.lane_id end as lane_id, j.queue, j.kind,
        j.concurrency_key, j.priority, j.run_at
    into _lane;
    if _lane.lane_id is not null then
        perform jobq_private.call_lane(
            _lane.lane_id, _lane.queue, _lane.concurrency_key, _lane.priority, _lane.run_at
        );
        perform jobq_private.call_full_lanes(
            array[_lane.queue], array[_lane.lane_id], array[_lane.kind],
            array[_lane.concurrency_key]
        );
    end if;
    if _lane.run_at < now() + interval '60 s' then
        perform jobq_private.wake(array[_lane.queue]);
    end if;
end
$$;

revoke all on function jobq_private.put_off from public;

comment on function jobq_private.put_off is
'Has a job that has not begun take the payload of a later call, and wait on.';
