-- Purpose: forget idempotency keys past their retention, workers long gone, and gates at which
-- nothing is spent or held.
-- Invariant: a bounded number at a call; the key of a live job stays, and a gate for which a lane
-- waits, so that no claim finds it locked by this call. Raises: nothing.
create or replace function jobq_private.prune(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _keys bigint;
begin
    delete from jobq_private.worker as w where w.seen_at < now() - interval '10 min';

    delete from jobq_private.gate as g
    where g.ctid = any (array(
        select o.ctid
        from jobq_private.gate as o
        where o.queue is not null
        and o.passed_until < now()
        and o.held_until < now()
        and not exists (select from jobq_private.job as j where j.job_id = o.head_job_id)
        and not exists (select from jobq_private.lane as l where l.lane_id = o.gate_id)
        and not exists (select from jobq_private.lane as l where l.key_gate_id = o.gate_id)
        limit prune.max_rows
        for update skip locked
    ));

    delete from jobq_private.throttle as t
    where t.ctid = any (array(
        select o.ctid from jobq_private.throttle as o
        where o.until < now()
        limit prune.max_rows
        for update skip locked
    ));

    with old as materialized (
        select k.kind, k.idempotency_key
        from jobq_private.idempotency_key as k
        where k.created_at < now() - (select g.key_retention from jobq_private.setting as g)
        and not exists (select from jobq_private.job as j where j.job_id = k.job_id)
        order by k.created_at
        limit prune.max_rows
        for update skip locked
    )
    delete from jobq_private.idempotency_key as k
    using old as o
    where k.kind = o.kind and k.idempotency_key = o.idempotency_key;
    get diagnostics _keys = row_count;
    return _keys;
end
$$;

revoke all on function jobq_private.prune from public;

comment on function jobq_private.prune is
'Forgets idempotency keys past their retention, workers long gone, and gates that say nothing.';
