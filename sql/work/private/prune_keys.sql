-- Purpose: delete idempotency keys past their retention, ended throttles, and workers long gone;
-- return how many keys or throttles, whichever are more. The key of a live job stays.
create or replace function jobq_private.prune_keys(max_rows integer)
returns bigint language plpgsql as $$
declare
    _throttles bigint;
    _keys bigint;
begin
    delete from jobq_private.worker as w where w.seen_at < now() - interval '10 min';

    delete from jobq_private.throttle as t
    where t.ctid = any (array(
        select o.ctid from jobq_private.throttle as o
        where o.until < now()
        limit prune_keys.max_rows
        for update skip locked
    ));
    get diagnostics _throttles = row_count;

    with old as materialized (
        select k.kind, k.idempotency_key
        from jobq_private.idempotency_key as k
        where k.created_at < now() - (select g.key_retention from jobq_private.setting as g)
        and not exists (select from jobq_private.job as j where j.job_id = k.job_id)
        order by k.created_at
        limit prune_keys.max_rows
        for update skip locked
    )
    delete from jobq_private.idempotency_key as k
    using old as o
    where k.kind = o.kind and k.idempotency_key = o.idempotency_key;
    get diagnostics _keys = row_count;
    return greatest(_keys, _throttles);
end
$$;
