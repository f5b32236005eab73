-- Purpose: the time under which settle_failures() has recorded attempts, as its setting tells
-- it: in microseconds since 1970, in no session's style of dates. Null for any other text.
-- Invariant: no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.noted_at(setting text)
returns timestamptz
language sql
immutable
parallel safe
security invoker
as $$
    select case
        when setting ~ '^[0-9]{16}$'
        then pg_catalog.to_timestamp(setting::double precision / 1000000)
    end
$$;

revoke all on function jobq_private.noted_at from public;

comment on function jobq_private.noted_at is
'Reads the time at which a batch of attempts was recorded.';
