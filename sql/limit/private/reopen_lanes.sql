-- Purpose: open lanes that are closed as full though they are not: where nobody told of the end of a
-- job, as after a raw delete, or repeatable snapshots that crossed.
-- Invariant: 200 lanes at a call, from where the session's last call ended. Raises: nothing.
create or replace function jobq_private.reopen_lanes()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _name constant text := 'jobq.reopened';
    _from constant uuid := coalesce(
        nullif(current_setting(_name, true), '')::uuid,
        '00000000-0000-0000-0000-000000000000'
    );
    _lanes uuid[];
    _queues text[];
begin
    _lanes := array(
        select l.lane_id
        from jobq_private.lane as l
        where l.lane_id > _from
        order by l.lane_id, l.priority
        limit 200
    );
    perform set_config(_name, coalesce(_lanes[200]::text, ''), false);
    with opened as (
        update jobq_private.lane as l
        set state = 'open', open_at = '-infinity'
        where l.ctid = any (array(
            select t.ctid
            from jobq_private.lane as t
            cross join lateral jobq_private.lane_rule(t.queue, t.concurrency_key) as r
            cross join lateral jobq_private.free_places(
                t.queue, t.lane_id, r.max_running, 1
            ) as p (places)
            where t.lane_id = any (_lanes)
            and t.state = 'full'
            and t.gate_id is null
            and p.places is distinct from '{}'
            and (
                t.key_gate_id is null
                or exists (
                    select
                    from (
                        select j
                        from jobq_private.job as j
                        where j.queue = t.queue
                        and j.lane_id = t.lane_id
                        and j.priority = t.priority
                        and j.state in ('queued', 'retrying')
                        order by j.run_at, j.job_id
                        limit 1
                    ) as h
                    where not exists (
                        select from jobq_private.barriers(h.j, clock_timestamp(), 1)
                    )
                )
            )
            for update of t skip locked
        ))
        returning l.queue
    )
    select array_agg(distinct o.queue) into _queues from opened as o;
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
end
$$;

revoke all on function jobq_private.reopen_lanes from public;

comment on function jobq_private.reopen_lanes is
'Opens lanes that are closed as full though they are not.';
