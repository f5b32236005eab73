-- Purpose: insert a batch of checked jobs of which some have idempotency or dedup keys.
-- Invariant: idempotency keys are taken first, by kind and key, then dedup keys, by kind and key.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.insert_keyed_jobs(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _job jobq_private.new_job;
    _ids uuid[];
    _fresh boolean[];
    _plain jobq_private.new_job[];
    _stored uuid[];
begin
    select h.ids, h.fresh into _ids, _fresh
    from jobq_private.hold_keys(insert_keyed_jobs.jobs) as h;
    _plain := array(
        select j from unnest(insert_keyed_jobs.jobs) as j
        where j.dedup_key is null and coalesce(_fresh[j.ordinal], true)
    );
    _stored := jobq_private.store_jobs(_plain, coalesce(_ids, '{}'));
    return query
    select j.ordinal, _stored[j.ordinality], true
    from unnest(_plain) with ordinality as j;
    for _job in
        select j.* from unnest(insert_keyed_jobs.jobs) as j
        where j.dedup_key is not null and coalesce(_fresh[j.ordinal], true)
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(
            _job, coalesce(_ids[_job.ordinal], jobq_private.new_id())
        ) as s;
    end loop;

    if false = any (_fresh) then
        perform pg_logical_emit_message(true, 'jobq', '');
        return query
        select j.ordinal, k.job_id, false
        from unnest(insert_keyed_jobs.jobs) as j
        join jobq_private.idempotency_key as k
            on k.kind = j.kind and k.idempotency_key = j.idempotency_key
        where not _fresh[j.ordinal];
    end if;
end
$$;

revoke all on function jobq_private.insert_keyed_jobs from public;

comment on function jobq_private.insert_keyed_jobs is
'Inserts a batch of checked jobs of which some have keys.';
