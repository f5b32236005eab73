-- Purpose: the first time strictly after an instant at which a parsed cron expression fires.
-- Invariant: depends only on the zone database. A local time names one instant, none (a gap) or
-- two (a fold). PostgreSQL converts one in a gap by the offset before it, one in a fold by the
-- offset after it: so _at shows another local time in a gap, and is the second instant in a fold.
-- No SET, because it is called often; all names are qualified.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_next(cron jobq_private.cron, after timestamptz)
returns timestamptz language plpgsql stable as $$
declare
    _zone constant text := cron.time_zone;
    _start timestamp := after at time zone _zone;
    _next timestamp := jobq_private.cron_next_local(
        cron, pg_catalog.date_trunc('second', _start) + interval '1 second'
    );
    _at timestamptz := _start at time zone _zone;
    _first timestamptz;
    _fold interval;
begin
    if cron.repeats_in_fold and _at > after then
        -- the clocks will show this local time again, and all times since the fold
        -- began
        _start := jobq_private.cron_change(_zone, _at) at time zone _zone;
        _first := jobq_private.cron_next_local(cron, _start) at time zone _zone;
        if _next >= _start + (_at - after) is not false
            and _first at time zone _zone < _start + (_at - after)
        then
            return _first;
        end if;
    end if;
    while _next is not null loop
        _at := _next at time zone _zone;
        if _at at time zone _zone <> _next then
            _at := jobq_private.cron_change(_zone, _at);
            exit when cron.runs_in_gap;
            _start := _at at time zone _zone;
        else
            _fold := ((_at - interval '24 hours') at time zone _zone)
                + interval '24 hours' - _next;
            exit when _fold <= interval '0';
            _first := ((_at at time zone 'UTC') - _fold) at time zone 'UTC';
            exit when _first at time zone _zone <> _next or (
                cron.repeats_in_fold and _first <= after
            );
            if _first > after then
                return _first;
            end if;
            _start := (jobq_private.cron_change(_zone, _at) at time zone _zone)
                + _fold;
        end if;
        _next := jobq_private.cron_next_local(cron, _start);
    end loop;
    return case when _next is not null then _at end;
end
$$;
