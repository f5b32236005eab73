-- Purpose: of each of these keys, its next due jobs and the slots that they get; with the keys
-- that are idle: there was none, or none may start.
-- Invariant: locks the keys' limits, if any apply, then counts free slots. One job of each key
-- while there are keys for all that is wanted (what is locked beyond that is left); else equal
-- shares. is_charged: limits of these keys record starts. skipped: keys locked by others,
-- unwanted kinds. The keys have one queue and one priority.
create or replace function jobq_private.take_jobs(
    keys jobq_private.waiting_key[], wanted integer, has_limits boolean, kinds text[],
    except_kinds text[], out jobs tid[], out slots smallint[],
    out is_charged boolean, out idle jobq_private.waiting_key[], out skipped integer
)
language plpgsql as $$
declare
    _now timestamptz;
    _share integer;
    _first constant jobq_private.waiting_key := keys[1];
    _picked constant integer := cardinality(keys);
    _locked uuid[];
    _scopes jobq_private.scope[];
begin
    if has_limits then
        _scopes := array(
            select row(k.key_id, k.queue, k.kind, k.concurrency_key)::jobq_private.scope
            from unnest(take_jobs.keys) as k
        );
        _locked := jobq_private.lock_limits(_scopes, false);
        if cardinality(_locked) < _picked then
            keys := array(select k from unnest(take_jobs.keys) as k where k.key_id = any(_locked));
            _scopes := array(select s from unnest(_scopes) as s where s.limit_id = any(_locked));
        end if;
    end if;
    _now := clock_timestamp();
    _share := case cardinality(keys)
        when least(wanted, 100) then 1
        else ceil(wanted::numeric / greatest(1, cardinality(keys)))
    end;
    with seen as materialized (
        select
            r.n, j.job, row_number() over key as k, r.is_charged,
            (case
                when r.free_slots is null then row_number() over key
                else r.free_slots[row_number() over key]
            end)::smallint as slot,
            coalesce(take_jobs.kinds is null or j.kind = any(take_jobs.kinds), false)
            and coalesce(j.kind <> all(take_jobs.except_kinds), true) as is_wanted,
            -- a rate lets a job start while a unit is left, a budget while the whole cost is
            coalesce(sum(j.cost) over key - j.cost < r.rate_left, true)
            and coalesce(sum(j.cost) over key <= r.budget_left, true) as fits
        from (
            select
                r.n, r.limit_id as key_id, r.max_starts, r.rate_left, r.budget_left, r.first_job_id,
                r.is_charged, case when r.used_slots <> '{}' then array(
                    select s from generate_series(  -- the lowest
                        1, cardinality(r.used_slots) + least(_share, r.max_starts)
                    ) as s
                    where s <= 32767 and s <> all(r.used_slots)
                ) end as free_slots  -- null: all
            from jobq_private.check_limits(_scopes, _now) as r
            union all
            select k.ordinality, k.key_id, null, null, null, null, null, '{}'
            from unnest(take_jobs.keys) with ordinality as k
            where not has_limits
        ) as r
        cross join lateral (
            select j.ctid as job, j.kind, j.run_at, j.job_id,
                case when num_nonnulls(r.rate_left, r.budget_left) > 0 then coalesce(j.cost, 1) end
                    as cost
            from jobq_private.job as j
            where j.queue = _first.queue
            and j.key_id = r.key_id
            and j.priority = _first.priority
            and j.state in ('queued', 'retrying')
            and j.run_at <= _now
            and (r.first_job_id is null or j.job_id = r.first_job_id)
            order by j.run_at, j.job_id
            limit least(_share, r.max_starts)
            for update skip locked
        ) as j
        window key as (partition by r.n order by j.run_at, j.job_id)
    )
    select
        coalesce(array_agg(t.job) filter (where t.is_wanted), '{}'),
        array_agg(t.slot) filter (where t.is_wanted),
        bool_or(t.is_charged),
        array(
            select take_jobs.keys[n] from generate_subscripts(take_jobs.keys, 1) as n
            where n not in (select s.n from seen as s where s.fits)
        ),
        _picked - cardinality(take_jobs.keys) + count(*) filter (where not t.is_wanted)
    into take_jobs.jobs, take_jobs.slots, take_jobs.is_charged, take_jobs.idle, take_jobs.skipped
    from (select s.* from seen as s where s.fits order by s.k, s.n limit wanted) as t;
end
$$;
