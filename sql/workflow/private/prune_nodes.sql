-- Purpose: forget the names in graphs of jobs that have gone.
-- Invariant: a bounded number of rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_nodes(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
begin
    delete from jobq_private.node as n
    where n.job_id in (
        select o.job_id
        from jobq_private.node as o
        where o.job_id < jobq_private.id_floor(prune_nodes.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_nodes.max_rows
    );
    get diagnostics _gone = row_count;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_nodes from public;

comment on function jobq_private.prune_nodes is
'Forgets the names in graphs of jobs that have gone.';
