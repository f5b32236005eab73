-- Purpose: Counts what would be lost if this shard were removed. Only for jobq_owner.
-- Invariant: reads only. Raises: nothing.
-- Column type: queued, running, retrying or blocked jobs, jobs on the move, schedules, and
-- idempotency keys that are still valid.
-- Column count: how many there are.
-- Example: select type, count from jobq_internal.list_leftovers();
create or replace function jobq_internal.list_leftovers()
returns table (type text, count bigint) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select j.state || ' jobs', count(*) from jobq_private.job as j group by j.state
    union all
    select 'jobs on the move', count(*)
    from jobq_private.moved_job as m
    where m.job is not null
    having count(*) > 0
    union all
    select 'schedules', count(*)
    from jobq_private.schedule as s
    where s.status <> 'retired'
    having count(*) > 0
    union all
    select 'idempotency keys', count(*)
    from jobq_private.idempotency_key as k
    where k.created_at >= now() - (select g.key_retention from jobq_private.setting as g)
    and not exists (
        select from jobq_private.moved_job as m
        where m.job_id = k.job_id and m.shard_id is not null and m.job is null
    )
    having count(*) > 0
$$;
