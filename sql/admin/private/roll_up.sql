-- Purpose: update the queue's history up to the last full minute, delete old rows, and
-- count the waiting jobs of long queues.
-- Invariant: at most ten minutes per call, each minute once: the row with the position is locked.
-- Counts a minute ten seconds after its end, so that calls in progress are included. If grants by
-- queue are enforced, only a login that holds all queues does it.
create or replace function jobq_private.roll_up()
returns bigint language plpgsql set jit = off as $$
declare
    _since timestamptz;
    _until constant timestamptz := date_trunc('minute', clock_timestamp() - interval '10 s');
    _to timestamptz;
    _rows bigint := 0;
    _width record;
begin
    if row_security_active('jobq_private.job') and not coalesce(
        (select h.any_of && '{*}' from jobq_private.held_queue as h), false
    ) then
        return 0;
    end if;
    select greatest(m.rolled_to, _until - interval '3 h') into _since
    from jobq_private.history_mark as m
    where m.rolled_to < _until
    for update skip locked;
    if not found then
        return 0;
    end if;

    _to := least(_until, _since + interval '10 min');
    for _width in
        select *
        from (
            values (1, null::integer, interval '3 h'), (10, 1, '50 h'), (60, 10, '32 days')
        ) as w (minutes, narrow, kept)
    loop
        _rows := _rows
            + jobq_private.roll_up_buckets(_width.minutes, _width.narrow, _since, _to);
        delete from jobq_private.history as h
        where h.minutes = _width.minutes and h.bucket < _until - _width.kept;
        delete from jobq_private.latency as l
        where l.minutes = _width.minutes and l.bucket < _until - _width.kept;
    end loop;
    perform jobq_private.count_waiting();
    update jobq_private.history_mark as m set rolled_to = _to;
    return _rows;
end
$$;
