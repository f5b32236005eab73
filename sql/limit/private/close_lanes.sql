-- Purpose: close lanes in which a claim has found nothing: as full, until their next job is due, or
-- for good; returns how many were closed.
-- Invariant: the caller holds the rows' locks, and those of their gates. What these say of a rate
-- is pulled back, as pull_back() does; where queue and keys have none, empty lanes go first, by a
-- statement that looks at nothing else. The protocol of call_lane(): only under the exclusive lock,
-- and after another look under it; while somebody holds the lock who may be about to add work or
-- room, the lane is only put off. A repeatable snapshot closes none. Hot: its caller pins the
-- search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.close_lanes(
    lanes jobq_private.lane[], has_rules boolean, has_gates boolean
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _mine uuid[];
    _heads uuid[];
    _gone uuid[] := '{}'::uuid[];
    _closed bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    if close_lanes.lanes = '{}' then
        return 0;
    end if;
    _mine := array(
        select l.lane_id
        from unnest(close_lanes.lanes) as l
        where pg_try_advisory_xact_lock(_closing, jobq_private.lane_slot(l.lane_id))
    );
    if not has_rules then
        with gone as (
            delete from jobq_private.lane as l
            using unnest(close_lanes.lanes) as e
            where l.lane_id = e.lane_id and l.priority = e.priority
            and e.lane_id = any (_mine)
            and (
                select j.job_id
                from jobq_private.job as j
                where j.lane_id = e.lane_id
                and j.priority = e.priority
                and j.state in ('queued', 'retrying')
                limit 1
            ) is null
            returning l.lane_id
        )
        select coalesce(array_agg(g.lane_id), '{}') into _gone from gone as g;
        if cardinality(_gone) = cardinality(lanes) then
            return cardinality(_gone);
        end if;
        close_lanes.lanes := array(
            select l
            from unnest(close_lanes.lanes) as l
            where l.lane_id <> all (_gone)
        );
    end if;
    if has_gates then
        _heads := jobq_private.lane_heads(lanes);
    end if;
    with found as materialized (
        select
            l.lane_id, l.priority, t.open_at,
            case
                when g.passed_until > n.now + r.burst * r.spacing * interval '1 us'
                then n.now + r.burst * r.spacing * interval '1 us'
            end as spent_until,
            jobq_private.key_gate_id(h.kind, l.concurrency_key) as key_gate_id,
            case
                when l.lane_id <> all (_mine) then 'busy'
                when w.run_at is null then 'empty'
                when t.open_at > n.now then 'later'
                when p.places = '{}' or h.priority <> l.priority then 'full'
                else 'busy'
            end as state
        from unnest(close_lanes.lanes) with ordinality as l
        cross join (select clock_timestamp()) as n (now)
        cross join lateral jobq_private.lane_rule(l.queue, l.concurrency_key) as r
        cross join lateral jobq_private.free_places(l.queue, l.lane_id, r.max_running, 1)
            as p (places)
        left join jobq_private.gate as g on g.gate_id = l.lane_id
        left join jobq_private.job as h
            on h.job_id = case
                when r.is_ordered then g.head_job_id else _heads[l.ordinality]
            end
            and h.lane_id = l.lane_id and h.state <> 'running'
        left join lateral (
            select j.run_at
            from jobq_private.job as j
            where j.lane_id = l.lane_id
            and j.priority = l.priority
            and j.state in ('queued', 'retrying')
            order by j.run_at
            limit 1
        ) as w on true
        cross join lateral (
            select greatest(
                case when h.priority = l.priority then h.run_at else w.run_at end,
                g.held_until,
                jobq_private.token_at(g.passed_until, r.spacing, r.burst, n.now)
            )
        ) as t (open_at)
    ),
    pulled_back as (
        update jobq_private.gate as g
        set passed_until = f.spent_until
        from found as f
        where f.spent_until is not null and g.gate_id = f.lane_id
    ),
    gone as (
        delete from jobq_private.lane as l
        using found as f
        where f.state = 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    ),
    closed as (
        update jobq_private.lane as l
        set
            state = case f.state when 'full' then 'full' else 'later' end,
            open_at = case f.state
                when 'busy' then clock_timestamp() + interval '5 ms'
                when 'full' then '-infinity'
                else f.open_at
            end,
            key_gate_id = f.key_gate_id
        from found as f
        where f.state <> 'empty' and l.lane_id = f.lane_id and l.priority = f.priority
        returning l.lane_id
    )
    select (select count(*) from gone as g) + (select count(*) from closed as c)
    into _closed;
    return cardinality(_gone) + _closed;
end
$$;

revoke all on function jobq_private.close_lanes from public;

comment on function jobq_private.close_lanes is
'Closes lanes in which a claim has found nothing.';
