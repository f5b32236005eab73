-- Purpose: a rate whose state lies further ahead than a whole burst, as after it was raised or the
-- clock was set back, is spent for one burst from now on.
-- Invariant: the caller holds the gate, and has found that it lets no job start. Raises: nothing.
create or replace function jobq_private.pull_back(
    gate_id uuid, spacing bigint, burst integer, now timestamptz
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    update jobq_private.gate as g
    set passed_until = pull_back.now + burst * spacing * interval '1 us'
    where g.gate_id = pull_back.gate_id
    and g.passed_until > pull_back.now + burst * spacing * interval '1 us'
$$;

revoke all on function jobq_private.pull_back from public;

comment on function jobq_private.pull_back is
'Has a rate that is spent for too long be spent for one burst.';
