-- Purpose: how many jobs a rate lets start now: the generic cell rate algorithm, whose state
-- is the time until which the rate is spent. Null without a rate.
-- Invariant: never more than burst. What is spent lies at most a whole burst ahead; where it
-- lies further, the clock went back, and it counts as a whole burst. No SET clause, so that it
-- is inlined. Raises: nothing.
create or replace function jobq_private.tokens(
    passed_until timestamptz, spacing bigint, burst integer, now timestamptz
)
returns integer
language sql
stable
parallel safe
security invoker
as $$
    select case
        when spacing is null then null
        when passed_until is null or passed_until <= now then burst
        when passed_until >= now + burst * spacing * interval '1 us' then 0
        else ((
            burst * spacing - (extract(epoch from passed_until - now) * 1000000)::bigint
        ) / spacing)::integer
    end
$$;

revoke all on function jobq_private.tokens from public;

comment on function jobq_private.tokens is
'How many jobs a rate lets start now.';
