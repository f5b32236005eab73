-- Purpose: take the idempotency keys of a batch; return by ordinal the job of each key, which
-- is the new one if the key was free or missing.
-- Invariant: keys are locked in the order of kind and key; new ones by one statement. Of jobs
-- with the same key, the first is created. Raises: nothing.
create or replace function jobq_private.hold_keys(jobs jobq_private.new_job[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    _holders uuid[] := array(
        select j.job_id from unnest(hold_keys.jobs) as j order by j.ordinal
    );
    _job jobq_private.new_job;
begin
    if cardinality(jobs) = 1 then
        _job := jobs[1];
        return case
            when _job.idempotency_key is null or _job.schedule_id is not null then _holders
            else array[jobq_private.hold_key(
                _job.kind, _job.queue, _job.idempotency_key, _job.job_id
            )]
        end;
    end if;
    for _job in
        with given as materialized (
            select j.*
            from unnest(hold_keys.jobs) as j
            where j.idempotency_key is not null and j.schedule_id is null
        ),
        held as (
            insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
            select distinct on (g.kind, g.idempotency_key) g.kind, g.idempotency_key, g.job_id
            from given as g
            order by g.kind, g.idempotency_key, g.ordinal
            on conflict on constraint idempotency_key_pkey do nothing
            returning k.job_id
        )
        select g.*
        from given as g
        where g.job_id not in (select h.job_id from held as h)  -- hashed
        order by g.kind, g.idempotency_key, g.ordinal
    loop
        _holders[_job.ordinal] := jobq_private.hold_key(
            _job.kind, _job.queue, _job.idempotency_key, _job.job_id
        );
    end loop;
    return _holders;
end
$$;
