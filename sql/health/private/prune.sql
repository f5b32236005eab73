-- Purpose: forget idempotency keys past their retention, and workers long gone.
-- Invariant: a bounded number at a call; the key of a live job stays. Raises: nothing.
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
'Forgets idempotency keys past their retention, and workers long gone.';
