-- Purpose: store the jobs of slots that were taken, by the overlap rule of each.
-- Invariant: the checks were made when the schedule was declared, and are not repeated:
-- a slot that could be refused would be lost, or hold up all others. One statement
-- finds the slots that are to be skipped, one stores the first of each key and all that
-- may overlap; what is left goes in one by one, in the order of keys. While grants by queue are
-- enforced, who has declared the schedule must still be allowed to add what it adds.
-- Raises: 42501, JQ004.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP,
-- PAYLOAD_INVALID, QUEUE_FULL, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
create or replace function jobq_private.schedule_fire(jobs jobq_private.new_job[])
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _ordinals integer[];
    _ids uuid[];
    _done integer[];
    _job jobq_private.new_job;
begin
    if row_security_active('jobq_private.job') then
        perform jobq_private.check_author(s.login, s.queue, s.kind, s.dedup, s.graph)
        from jobq_private.schedule as s
        where s.schedule_id in (select j.schedule_id from unnest(schedule_fire.jobs) as j);
    end if;
    select array_agg(j.ordinal), array_agg(l.job_id) into _ordinals, _ids
    from unnest(schedule_fire.jobs) as j
    join jobq_private.job as l on l.kind = j.kind and l.dedup_key = j.dedup_key
    where j.dedup = 'skip' and l.dedup is not null;
    return query
    select s.ordinal, s.job_id, false
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := coalesce(_ordinals, '{}');

    select array_agg(s.ordinal), array_agg(s.job_id) into _ordinals, _ids
    from jobq_private.schedule_store((
        select array_agg(f.job)
        from (
            select j as job, j.dedup_key, j.ordinal, row_number() over (
                partition by j.kind, j.dedup_key order by j.ordinal
            ) as place
            from unnest(schedule_fire.jobs) as j
        ) as f
        where (f.dedup_key is null or f.place = 1)
        and f.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
    )) as s;
    return query
    select s.ordinal, s.job_id, true
    from unnest(_ordinals, _ids) as s (ordinal, job_id);
    _done := _done || _ordinals;

    for _job in
        select j.*
        from unnest(schedule_fire.jobs) as j
        where j.ordinal not in (select d.ordinal from unnest(_done) as d (ordinal))
        order by j.kind, j.dedup_key, j.ordinal
    loop
        return query
        select _job.ordinal, s.job_id, s.created
        from jobq_private.store_job(_job) as s;
    end loop;
end
$$;

revoke all on function jobq_private.schedule_fire from public;

comment on function jobq_private.schedule_fire is
'Stores the jobs of slots that were taken, by the overlap rule of each.';
