-- Purpose: the result of a job's wait for the first of some events: the event that has
-- arrived, or a timeout; null while it waits.
-- Invariant: saves the result as a step, so that every later attempt gets the same. A signal to
-- the job has precedence over an event of that name. With one snapshot for the transaction, a
-- result that another session has saved since is invisible: fails to serialize. Raises: 40001.
create or replace function jobq_private.settle_wait(
    job_id uuid, attempt integer, name text, events text[]
)
returns jsonb language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _end jsonb;
begin
    select
        jsonb_build_object('outcome', 'arrived', 'payload', a.payload)
        || case when w.event = settle_wait.name then '{}' else jsonb_build_object('event', w.event) end
    into _end
    from unnest(events) as w (event)
    cross join lateral (
        (
            select e.payload, e.emitted_at as arrived_at
            from jobq_private.event as e
            where e.event = w.event and e.job_id in (settle_wait.job_id, _all)
            order by e.job_id = _all
            limit 1
        )
        union all
        select c.payload, c.finished_at
        from (select jobq_private.ended_job(w.event) offset 0) as i (child_id)
        cross join lateral jobq_private.child_end(i.child_id) as c
        where starts_with(w.event, 'job_ended:')
    ) as a
    order by a.arrived_at, w.event
    limit 1;
    if not found then
        select jsonb_build_object('outcome', 'timed_out', 'payload', null) into _end
        from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id
        and w.event = any(events)
        and w.deadline <= clock_timestamp()
        limit 1;
    end if;
    if _end is not null then
        insert into jobq_private.step (job_id, name, value, attempt)
        values (settle_wait.job_id, 'event:' || settle_wait.name, _end, settle_wait.attempt)
        on conflict on constraint step_pkey do nothing;
        delete from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id and w.event = any(events);
    end if;
    return _end;
end
$$;
