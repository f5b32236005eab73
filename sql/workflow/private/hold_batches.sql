-- Purpose: keep the batches of ended jobs, that are about to be redriven, from ending.
-- Invariant: as enter_batches(), the lock of each is held shared until the commit; one that has
-- ended already is no obstacle. Raises: nothing.
create or replace function jobq_private.hold_batches(members uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _since constant timestamptz := (
        select jobq_private.id_time(m.job_id) - interval '1 day'
        from unnest(hold_batches.members) as m (job_id)
        order by m.job_id
        limit 1
    );
    _batch_id uuid;
begin
    for _batch_id in
        select distinct a.batch_id
        from jobq_private.job_archive as a
        where a.job_id = any(hold_batches.members)
        and a.finished_at >= _since
        and a.batch_id is not null
        order by a.batch_id
    loop
        perform pg_advisory_xact_lock_shared(_batching, hashtext(_batch_id::text));
    end loop;
end
$$;

revoke all on function jobq_private.hold_batches from public;

comment on function jobq_private.hold_batches is
'Keeps the batches of jobs that are redriven from ending.';
