-- Purpose: count the waiting jobs of queues at a bounded cost.
-- Invariant: first reads the same number of jobs of each queue, then uses the rest of
-- the number for longer queues, in two rounds. If queued, scheduled and retrying of a
-- queue together exceed ends_at, each may be larger. oldest covers the jobs that were
-- read.
create or replace function jobq_private.look_waiting(queues text[], most integer)
returns table (
    queue text, queued bigint, scheduled bigint, retrying bigint, oldest timestamptz,
    ends_at integer
)
language plpgsql
stable
parallel safe
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _count constant integer := cardinality(look_waiting.queues);
    _floor constant integer := least(100, 1 + 2 * look_waiting.most / greatest(1, _count));
    _end integer := least(look_waiting.most, _floor + look_waiting.most / greatest(1, _count));
    _open integer[] := array(select generate_series(1, _count));
    _cut integer[];
    _left integer := look_waiting.most;
    _queued bigint[];
    _scheduled bigint[];
    _retrying bigint[];
    _oldest timestamptz[];
    _ends integer[];
    _found record;
    _n integer;
begin
    for _round in 1..3 loop
        _cut := '{}';
        foreach _n in array _open loop
            select h.* into _found
            from jobq_private.count_head(look_waiting.queues[_n], _end, _now) as h;
            _queued[_n] := _found.queued;
            _scheduled[_n] := _found.scheduled;
            _retrying[_n] := _found.retrying;
            _oldest[_n] := _found.oldest;
            _ends[_n] := _end;
            if _found.seen > _end then
                _cut := _cut || _n;
            else
                _left := _left - _found.seen::integer;
            end if;
        end loop;
        exit when _cut = '{}' or _left / cardinality(_cut) <= _end;
        _end := _left / cardinality(_cut);
        _open := _cut;
    end loop;
    return query
    select s.queue, s.queued, s.scheduled, s.retrying, s.oldest, s.ends_at
    from unnest(look_waiting.queues, _queued, _scheduled, _retrying, _oldest, _ends)
        as s (queue, queued, scheduled, retrying, oldest, ends_at);
end
$$;
