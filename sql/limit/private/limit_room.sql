-- Purpose: what a whole queue (kind null) or a whole kind (queue null) may start now: how many jobs by
-- their number (slots), what its rate lets start (rate_left) and its budget has left; null for any number. room is
-- how many jobs may start if each costs 1; open_at is when that changes by itself.
-- Invariant: exact for who holds the limit; counts what runs, from job_place_idx. After a job did not fit into
-- the budget there is no room until the period ends, more is granted, or maintain() asks anew.
-- Raises: nothing.
create or replace function jobq_private.limit_room(
    queue text, kind text, now timestamptz, out room integer, out open_at timestamptz,
    out slots integer, out rate_left integer, out budget_left numeric, out budget_end timestamptz
)
language plpgsql
stable
parallel safe
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _limit jobq_private.limit_state;
    _rule record;
    _spacing double precision;
begin
    select g.* into _limit
    from jobq_private.limit_state as g
    where g.limit_id = jobq_private.limit_id(limit_room.queue, limit_room.kind);
    select r.* into _rule
    from (
        select
            q.max_running, q.rate_limit, q.rate_period, coalesce(q.rate_burst, 1) as burst, q.budget
        from jobq_private.queue as q
        where q.queue = limit_room.queue
        union all
        select k.max_running, k.rate_limit, k.rate_period, coalesce(k.rate_burst, 1), k.budget
        from jobq_private.kind as k
        where k.kind = limit_room.kind
    ) as r;
    if _rule.rate_limit is not null then
        _spacing := jobq_private.spacing(_rule.rate_limit, _rule.rate_period);
        rate_left := jobq_private.rate_left(_limit.level, _limit.charged_at, _spacing, _rule.burst, now);
        open_at := jobq_private.rate_opens_at(
            _limit.level, _limit.charged_at, _spacing, _rule.burst, now
        );
    end if;
    if (_rule.budget).amount is not null then
        budget_left := jobq_private.budget_left(
            _rule.budget, _limit.spent, _limit.charged_at, now
        );
        budget_end := jobq_private.budget_end(_rule.budget, now);
    end if;
    if _rule.max_running is not null then
        slots := greatest(0, _rule.max_running - case
            when limit_room.queue is not null then (
                select count(*) from jobq_private.job as j
                where j.queue = limit_room.queue and j.place is not null
            ) + (
                select count(*) from jobq_private.uncounted() as u
                where u.queue = limit_room.queue
            )
            else (
                select count(*) from jobq_private.job as j
                where j.kind = limit_room.kind and j.place is not null
            ) + (
                select count(*) from jobq_private.uncounted() as u
                where u.kind = limit_room.kind
            )
        end);
    end if;
    room := least(slots, rate_left);
    if budget_left <= 0 or budget_left is not null and _limit.full_until > now then
        room := 0;
        open_at := greatest(open_at, budget_end);
    end if;
    if _limit.held_until > now then
        room := 0;
        open_at := greatest(open_at, _limit.held_until);
    end if;
end
$$;
