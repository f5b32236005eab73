-- Purpose: how much of what a rate has let start is not paid for by time yet: a leaky
-- bucket.
-- Invariant: a charge that lies in the future comes from a clock that was set back
-- since, and counts no more. No SET clause, so that it is inlined.
create or replace function jobq_private.level(
    level double precision, charged_at timestamptz, spacing double precision, now timestamptz
)
returns double precision
language sql
stable
parallel safe
as $$
    select case
        when spacing is null then null
        when level is null or charged_at is null or charged_at > now + interval '10 s' then 0
        else greatest(0, level - greatest(
            0, extract(epoch from now - charged_at)::double precision * 1000000
        ) / spacing)
    end
$$;
