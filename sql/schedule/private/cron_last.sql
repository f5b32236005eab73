-- Purpose: the last time in a span at which a parsed cron expression fires.
-- Invariant: depends only on the zone database. Bisects the span with cron_next, so the
-- cost is logarithmic in the span and does not depend on the number of slots.
-- Raises: 22023 for a zone that cron_check did not see.
create or replace function jobq_private.cron_last(
    cron jobq_private.cron, after timestamptz, until timestamptz
)
returns timestamptz language plpgsql stable as $$
declare
    -- _fires is a slot; from _none to the end there is none
    _found timestamptz := jobq_private.cron_next(cron, after);
    _high timestamptz := until;
    _middle timestamptz;
    _next timestamptz;
begin
    if _found > until then
        return null;
    end if;
    while _found < _high loop
        _middle := pg_catalog.to_timestamp(pg_catalog.floor((
            pg_catalog.date_part('epoch', _found) + pg_catalog.date_part('epoch', _high)
        ) / 2));
        _next := jobq_private.cron_next(cron, _middle);
        if _next <= until then
            _found := _next;
        else
            _high := _middle;
        end if;
    end loop;
    return _found;
end
$$;
