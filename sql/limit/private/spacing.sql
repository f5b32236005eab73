-- Purpose: the microseconds in which a rate lets one unit of cost start; null without a
-- rate.
-- Invariant: no SET clause, so that it is inlined.
create or replace function jobq_private.spacing(rate_limit integer, rate_period interval)
returns double precision
language sql
immutable
parallel safe
as $$
    select extract(epoch from coalesce(rate_period, interval '1 s'))::double precision
        * 1000000 / rate_limit
$$;
