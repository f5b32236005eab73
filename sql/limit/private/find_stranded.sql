-- Purpose: find waiting jobs that no claim would see, from the rows alone, whatever was lost: a call, the
-- rows of lanes or limits, the news of a raw update or delete; and have their lanes opened.
-- Invariant: 1,000 lanes at a call, from where the session's last call ended. A call too many does no
-- harm: the claim closes the lane again. Returns how many it has opened. Raises: nothing.
create or replace function jobq_private.find_stranded()
returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _name constant text := 'jobq.stranded';
    _now constant timestamptz := clock_timestamp();
    _lane_id uuid := uuid '00000000-0000-0000-0000-000000000000';
    _priority smallint := (-32768)::smallint;
    _from text[] := string_to_array(nullif(current_setting(_name, true), ''), ' ');
    _seen jobq_private.lane[];
    _queues text[];
    _found bigint;
begin
    if _from is not null then
        _lane_id := _from[1]::uuid;
        _priority := _from[2]::smallint;
    end if;
    with recursive waiting as (
        (
            select j.lane_id, j.priority, j.queue, j.concurrency_key, j.kind
            from jobq_private.job as j
            where j.lane_id is not null and j.state in ('queued', 'retrying')
            and (j.lane_id, j.priority) > (_lane_id, _priority)
            order by j.lane_id, j.priority
            limit 1
        )
        union all
        select n.*
        from waiting as w
        cross join lateral (
            select j.lane_id, j.priority, j.queue, j.concurrency_key, j.kind
            from jobq_private.job as j
            where j.lane_id is not null and j.state in ('queued', 'retrying')
            and (j.lane_id, j.priority) > (w.lane_id, w.priority)
            order by j.lane_id, j.priority
            limit 1
        ) as n
    )
    select array_agg(
        row(
            w.lane_id, w.priority, w.queue, w.concurrency_key,
            jobq_private.lane_kind(w.lane_id, w.queue, w.concurrency_key, w.kind), null, null, null
        )
            ::jobq_private.lane
    )
    into _seen
    from (select w.* from waiting as w limit 1000) as w;
    perform set_config(
        _name,
        coalesce(_seen[1000].lane_id || ' ' || _seen[1000].priority, ''), false
    );
    with called as (
        insert into jobq_private.lane_call as c (queue, lane_id, concurrency_key, kind, priority)
        select s.queue, s.lane_id, s.concurrency_key, s.kind, s.priority
        from unnest(_seen) as s
        left join jobq_private.lane as l
            on l.lane_id = s.lane_id and l.priority = s.priority
        where not exists (
            select from jobq_private.lane_call as c
            where c.lane_id = s.lane_id and coalesce(c.priority, s.priority) = s.priority
        )
        and case
            when l.lane_id is null then true
            -- claims open these by themselves
            when l.state = 'open' or l.state = 'later' and l.open_at <= _now
                or l.limit_id is not null
            then false
            else exists (
                select
                from (
                    select j
                    from jobq_private.job as j
                    where j.lane_id = s.lane_id
                    and j.priority = s.priority
                    and j.state in ('queued', 'retrying')
                    order by j.run_at, j.job_id
                    limit 1
                ) as h
                where (h.j).run_at <= _now
                and not exists (select from jobq_private.blocking_limits(h.j, _now, 1))
            )
        end
        returning c.queue
    )
    select array_agg(distinct c.queue), count(*) into _queues, _found from called as c;
    perform jobq_private.release_dead_keys(array(
        select g.dead_job_id
        from jobq_private.limit_state as g
        where g.dead_job_id is not null
        order by random()
        limit 500
    ));
    -- the job that did not fit into a budget may be gone
    with reopened as (
        update jobq_private.limit_state as g
        set full_until = null
        where g.ctid = any (array(
            select o.ctid
            from jobq_private.limit_state as o
            where o.full_until > _now
            for update skip locked
        ))
        returning g.limit_id, g.queue
    )
    select _queues || array_agg(distinct coalesce(l.queue, r.queue)) into _queues
    from reopened as r
    left join jobq_private.lane as l on l.limit_id = r.limit_id
    where coalesce(l.queue, r.queue) is not null;
    -- a restore may lack what is made from the limits of kinds
    with made as (
        insert into jobq_private.limit_state as g (limit_id, kind)
        select jobq_private.limit_id(null, k.kind), k.kind
        from jobq_private.kind as k
        where num_nonnulls(k.max_running, k.rate_limit, k.budget) > 0
        and not exists (
            select from jobq_private.limit_state as g
            where g.limit_id = jobq_private.limit_id(null, k.kind)
        )
        on conflict on constraint limit_state_pkey do nothing
    )
    insert into jobq_private.known_limit (limit_id)
    select jobq_private.key_limit_id(k.kind, '')
    from jobq_private.kind as k
    where num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget) > 0
    and not exists (
        select from jobq_private.known_limit as g
        where g.limit_id = jobq_private.key_limit_id(k.kind, '')
    );
    if pg_try_advisory_xact_lock(jobq_private.lock_class('laning'), 256) then
        perform jobq_private.number_running();
    end if;
    delete from jobq_private.known_limit as k
    where k.ctid = any (array(
        select o.ctid
        from jobq_private.known_limit as o
        where o.limit_id is null
        and age(o.xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
        for update skip locked
    ))
    and not exists (
        select from jobq_private.limit_change as c where c.changed_at > _now - interval '10 s'
    )
    and not exists (select from jobq_private.uncounted() as u);
    if _queues is not null then
        perform jobq_private.wake(_queues);
    end if;
    return _found;
end
$$;
