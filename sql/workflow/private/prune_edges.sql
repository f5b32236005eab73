-- Purpose: forget what jobs that have gone waited for, and batches past retention.
-- Invariant: the caller sees all queues: what it does not see counts as gone. A bounded number of
-- rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_edges(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
    _rows bigint;
begin
    delete from jobq_private.edge as e
    where e.child in (
        select distinct o.child
        from jobq_private.edge as o
        where o.child < jobq_private.id_floor(prune_edges.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.child)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.child)
        order by o.child
        limit prune_edges.max_rows
    );
    get diagnostics _gone = row_count;
    _gone := _gone + jobq_private.prune_nodes(prune_edges.before, prune_edges.max_rows);
    delete from jobq_private.batch as b
    where b.batch_id in (
        select o.batch_id
        from jobq_private.batch as o
        where o.opened_at < prune_edges.before and o.ended_at < prune_edges.before
        limit prune_edges.max_rows
    );
    get diagnostics _rows = row_count;
    return _gone + _rows;
end
$$;

revoke all on function jobq_private.prune_edges from public;

comment on function jobq_private.prune_edges is
'Forgets what jobs that have gone waited for, and batches past retention.';
