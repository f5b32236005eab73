-- Purpose: lease runnable jobs of a queue's keys to a worker. Keys take turns. The given
-- priority is that of the first job without a key (null if there is none): jobs of
-- higher priorities come first, and keys get half of the slots at that priority. A key
-- whose first job has an excluded kind is skipped.
-- Invariant: reads a bounded number of keys; waits for no lock. The caller has locked
-- the queue's limit. The session remembers the last key, where the next claim goes on.
create or replace function jobq_private.claim_keys(
    queue text, worker text, max_jobs integer, priority integer, look jobq_private.queue_look,
    kinds text[], except_kinds text[]
)
returns jobq.claimed_job[] language plpgsql as $$
declare
    _name constant text := 'jobq.key_' || (hashtext(queue) & 1023);
    _last uuid := coalesce(nullif(current_setting(_name, true), '')::uuid, gen_random_uuid());
    _bottom constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _top constant uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    _claimed jobq.claimed_job[] := '{}'::jobq.claimed_job[];
    _started jobq.claimed_job[];
    _left integer := max_jobs;
    _priority integer := 32768;
    _width integer;
    _keys jobq_private.waiting_key[];
    _jobs tid[];
    _slots smallint[];
    _is_charged boolean;
    _idle jobq_private.waiting_key[];
    _skipped integer;
    _closed bigint;
begin
    perform jobq_private.open_due_keys(queue, clock_timestamp(), _last);
    while _left > 0 loop
        _priority := (
            select max(w.priority)
            from jobq_private.waiting_key as w
            where w.queue = claim_keys.queue and w.state = 'open' and w.priority < _priority
        );
        exit when _priority is null or _priority < claim_keys.priority;
        if _priority = claim_keys.priority then
            _left := least(_left, floor(max_jobs / 2.0 + random())::integer);
        end if;
        _width := least(_left, 100);
        for _round in 1 .. 50 loop
            exit when _left = 0;
            _keys := array(
                select k.key
                from (values (_last, _top), (_bottom, _last)) as r (low, high)
                cross join lateral (
                    select distinct on (w.key_id) w as key
                    from jobq_private.waiting_key as w
                    where w.queue = claim_keys.queue and w.priority = _priority
                    and w.state = 'open' and w.key_id > r.low and w.key_id <= r.high
                    order by w.key_id
                    limit _width
                ) as k
                limit _width
            );
            exit when _keys = '{}';
            _last := (_keys[cardinality(_keys)]).key_id;
            select t.* into _jobs, _slots, _is_charged, _idle, _skipped
            from jobq_private.take_jobs(_keys, _left, look.has_limits, kinds, except_kinds) as t;
            _closed := 0;
            if look.has_kind_limits or look.is_limited or exists (
                select from unnest(_keys) as k where k.kind is not null
            ) then
                select p.* into _jobs, _slots, _closed
                from jobq_private.pass_limits(queue, _jobs, _slots, look) as p;
            end if;
            _started := array(
                select s
                from jobq_private.start_jobs(_jobs, claim_keys.worker, _slots) as s
                where s.lease_expires_at is not null  -- an expired job has died instead
                order by s.run_at, s.job_id
            );
            if _is_charged or look.has_kind_limits or look.is_limited then
                perform jobq_private.charge(
                    array(select s.job_id from unnest(_started) as s),
                    coalesce(look.is_limited, false)
                );
            end if;
            _claimed := _claimed || _started;
            _left := _left - cardinality(_jobs);
            _closed := _closed + jobq_private.close_keys(_idle);
            -- Look further if others have locked the keys, or jobs of other kinds are first.
            exit when _jobs = '{}' and _closed = 0
                and (cardinality(_keys) < _width or 2 * _skipped < cardinality(_keys));
            _width := least(100, case when _jobs = '{}' then _width * 2 else _left end);
        end loop;
    end loop;
    perform set_config(_name, _last::text, false);
    return _claimed;
end
$$;
