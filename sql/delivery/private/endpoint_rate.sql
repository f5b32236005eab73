-- Purpose: the rate that allows an endpoint a given number of deliveries in any second.
-- Invariant: subtracts the burst from the rate, so that no second has more.
create or replace function jobq_private.endpoint_rate(
    max_per_second double precision,
    out rate_limit integer, out rate_period interval, out rate_burst integer
)
language plpgsql immutable as $$
declare
    _even double precision;
begin
    if max_per_second is not null then
        rate_burst := least(1 + floor(max_per_second / 20), 32767);
        _even := max_per_second - rate_burst + 1;
        rate_period := make_interval(secs => case when _even < 1000 then 1000 else 1 end);
        rate_limit := greatest(
            1, floor(_even * case when _even < 1000 then 1000 else 1 end)
        );
    end if;
end
$$;
