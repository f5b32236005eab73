-- Purpose: the time at which the clocks of a zone changed within the 24 hours before an instant.
-- Invariant: depends only on the zone database. The caller has checked that there was a change of
-- at most 24 hours; bisection finds its second. Computes in seconds, because the length of a day
-- of timestamptz depends on the session's zone. No SET; all names are qualified.
create or replace function jobq_private.cron_change(time_zone text, latest timestamptz)
returns timestamptz language plpgsql stable as $$
declare
    _high double precision := pg_catalog.floor(pg_catalog.date_part('epoch', latest));
    _low double precision := _high - 86400;
    _middle double precision;
    _at timestamptz;
    _offset interval := (latest at time zone time_zone) - (latest at time zone 'UTC');
begin
    while _high - _low > 1 loop
        _middle := pg_catalog.floor((_low + _high) / 2);
        _at := pg_catalog.to_timestamp(_middle);
        if (_at at time zone time_zone) - (_at at time zone 'UTC') = _offset then
            _high := _middle;
        else
            _low := _middle;
        end if;
    end loop;
    return pg_catalog.to_timestamp(_high);
end
$$;
