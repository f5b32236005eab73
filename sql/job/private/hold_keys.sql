-- Purpose: hold the idempotency keys of a batch: by ordinal, an id for each of its jobs, and
-- whether the job is to be made under it. Both are null where no job has a key.
-- Invariant: keys are taken in the order of kind and key; those that are new by one
-- statement. Of jobs with one key, the first is made. Raises: nothing.
create or replace function jobq_private.hold_keys(
    jobs jobq_private.new_job[], out ids uuid[], out fresh boolean[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _job jobq_private.new_job;
begin
    if not exists (
        select from unnest(hold_keys.jobs) as j where j.idempotency_key is not null
    ) then
        return;
    end if;
    ids := array(
        select jobq_private.new_id() from unnest(hold_keys.jobs) as j order by j.ordinal
    );
    with given as materialized (
        select
            j.ordinal, j.kind, j.idempotency_key, ids[j.ordinal] as job_id,
            row_number() over (
                partition by j.kind, j.idempotency_key order by j.ordinal
            ) as place
        from unnest(hold_keys.jobs) as j
    ),
    held as (
        insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
        select g.kind, g.idempotency_key, g.job_id
        from given as g
        where g.idempotency_key is not null and g.place = 1
        order by g.kind, g.idempotency_key
        on conflict on constraint idempotency_key_pkey do nothing
        returning job_id
    )
    select array_agg(
        g.idempotency_key is null or h.job_id is not null order by g.ordinal
    )
    into fresh
    from given as g
    left join held as h on h.job_id = g.job_id;

    for _job in
        select j.* from unnest(hold_keys.jobs) as j
        where not fresh[j.ordinal]
        order by j.kind, j.idempotency_key, j.ordinal
    loop
        fresh[_job.ordinal] := ids[_job.ordinal] = jobq_private.hold_key(
            _job.kind, _job.queue, _job.idempotency_key, ids[_job.ordinal]
        );
    end loop;
end
$$;

revoke all on function jobq_private.hold_keys from public;

comment on function jobq_private.hold_keys is
'Holds the idempotency keys of a batch, and says which jobs are to be made.';
