-- Purpose: lease runnable jobs of a queue's lanes to a worker: those of a higher priority
-- than the given one, at which a claim finds jobs without a lane, and half of what it wants
-- at that priority; all where there are none (null). Only of these kinds, and none of those
-- excepted, null for any: where another goes first in a lane, that is left.
-- Invariant: bounded in lanes; SKIP LOCKED; what a lane may run is counted after its lock was
-- had, under the lock of the queue's limits that look_at() has taken. A lane in which nothing
-- was found is closed, and no other is written to. The time of a start is read after what runs
-- was counted, so that no end of what made room is later. Raises: nothing.
create or replace function jobq_private.claim_lanes(
    queue text, worker text, max_jobs integer, priority integer, is_limited boolean,
    has_kind_limits boolean, kinds text[] default null, except_kinds text[] default null
)
returns setof jobq.claimed_job
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _needs_places constant boolean := coalesce(is_limited, false) or has_kind_limits;
    _now constant timestamptz := clock_timestamp();
    _rules record;
    _bounds jobq_private.lane_bounds;
    _left integer := max_jobs;
    _level integer := 32768;
    _width integer;
    _lanes jobq_private.lane[];
    _whole uuid[];
    _jobs tid[];
    _places smallint[];
    _idle jobq_private.lane[];
    _others integer;
    _closed bigint;
    _is_ruled boolean;
    _kept tid[];
    _barred uuid[];
    _limits uuid[];
    _ids uuid[];
    _started_at timestamptz;
begin
    select r.* into _rules from jobq_private.lane_rules(queue, _now) as r;
    perform jobq_private.open_lanes(queue, _now, has_kind_limits);
    loop
        _level := jobq_private.next_level(queue, _level);
        exit when _level is null or _level < claim_lanes.priority;
        if _level = claim_lanes.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _lanes := jobq_private.pick_lanes(queue, _level, _width);
            exit when _lanes = '{}';
            -- what runs in a lane is counted for all its priorities
            _whole := jobq_private.lock_lanes(array(select l.lane_id from unnest(_lanes) as l));
            _lanes := array(
                select _lanes[l.ordinality]
                from unnest(_lanes) with ordinality as l
                where l.lane_id = any (_whole)
                order by l.ordinality
            );
            _is_ruled := _rules.has_rules
                or exists (select from unnest(_lanes) as l where l.kind is not null);
            if _is_ruled and _lanes <> '{}' then
                _lanes := jobq_private.hold_ruled_lanes(_lanes);
            end if;
            continue when _lanes = '{}';
            _bounds := null;
            if _is_ruled or not _rules.are_alike then
                _bounds := jobq_private.lane_bounds(_lanes, clock_timestamp());
            end if;
            select b.jobs, b.places, b.idle into _jobs, _places, _idle
            from jobq_private.take_from_lanes(
                _lanes, _rules.max_running, _bounds, clock_timestamp(), _left, _needs_places,
                not _needs_places and num_nonnulls(claim_lanes.kinds, claim_lanes.except_kinds) = 0
            ) as b;
            _others := 0;
            if num_nonnulls(claim_lanes.kinds, claim_lanes.except_kinds) > 0 and _jobs <> '{}'
            then
                _others := cardinality(_jobs);
                select coalesce(array_agg(u.job order by u.n), '{}'),
                    array_agg(u.place order by u.n), _others - count(*)
                into _jobs, _places, _others
                from unnest(_jobs, _places) with ordinality as u (job, place, n)
                join jobq_private.job as j on j.ctid = u.job
                where (claim_lanes.kinds is null or j.kind = any (claim_lanes.kinds))
                and (claim_lanes.except_kinds is null or j.kind <> all (claim_lanes.except_kinds));
            end if;
            if (has_kind_limits or _is_ruled) and _jobs <> '{}' then
                _kept := jobq_private.divert_jobs(_jobs);
                _closed := cardinality(_jobs) - cardinality(_kept);
                if _closed > 0 then
                    _places := array(
                        select u.place
                        from unnest(_jobs, _places) with ordinality as u (job, place, n)
                        where u.job = any (_kept)
                        order by u.n
                    );
                    _jobs := _kept;
                    perform jobq_private.open_called_lanes(queue);
                end if;
            else
                _closed := 0;
            end if;
            if _needs_places and _jobs <> '{}' then
                select p.jobs, p.places, p.barred, p.limits
                into _jobs, _places, _barred, _limits
                from jobq_private.pass_limits(
                    case when is_limited then queue end, clock_timestamp(), _jobs, _places
                ) as p;
                _closed := _closed + cardinality(_barred);
                if _barred <> '{}' then
                    perform jobq_private.bar_lanes(_barred, _limits, queue, _level);
                end if;
            end if;
            if _needs_places or _is_ruled then
                _ids := array(
                    select j.job_id from jobq_private.job as j where j.ctid = any (_jobs)
                );
            end if;
            _started_at := clock_timestamp();
            return query
            with taken as (
                update jobq_private.job as j
                set
                    state = 'running', worker = claim_lanes.worker,
                    previous_state = j.state, attempt = j.attempt + 1,
                    transition_slot = pg_backend_pid() & 1023,
                    claimed_at = _started_at, lease_expires_at = _started_at + j.lease,
                    place = t.place
                from unnest(_jobs, _places) as t (job, place)
                where j.ctid = t.job
                returning
                    j.job_id, j.attempt, j.kind, j.payload, j.metadata, j.queue,
                    j.max_attempts, j.timeout, j.lease_expires_at, j.run_at::timestamptz, j.created_at,
                    j.idempotency_key, j.lease, j.delivery_version,
                    j.is_awaited or j.place is not null or j.batch_id is not null
            )
            select t.* from taken as t
            where t.lease_expires_at is not null
            order by t.run_at, t.job_id;
            _left := _left - cardinality(_jobs);
            _width := least(100, case when _jobs = '{}' then _width * 2 else _left end);
            if _ids <> '{}' then
                perform jobq_private.charge_limits(_ids, coalesce(is_limited, false));
            end if;
            exit when jobq_private.close_lanes(_idle) + _closed = 0
                and _jobs = '{}' and 2 * _others < _width;
        end loop;
        exit when _left = 0;
    end loop;
end
$$;
