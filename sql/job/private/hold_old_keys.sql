-- Purpose: hold the idempotency keys of finished jobs that go back, given by kind, queue and key;
-- return those jobs whose key stands for another one, which stay.
-- Invariant: keys are taken in the order of kind and key, as by every batch; those that are free by
-- one statement. Of jobs with one key, the first has it. Raises: nothing.
create or replace function jobq_private.hold_old_keys(
    job_ids uuid[], kinds text[], queues text[], keys text[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _barred uuid[] := '{}'::uuid[];
    _job record;
begin
    insert into jobq_private.idempotency_key (kind, idempotency_key, job_id)
    select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
    from unnest(job_ids, kinds, keys) as g (job_id, kind, key)
    order by g.kind, g.key, g.job_id
    on conflict on constraint idempotency_key_pkey do nothing;

    for _job in
        select g.*
        from unnest(job_ids, kinds, queues, keys) as g (job_id, kind, queue, key)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key
        where k.job_id is distinct from g.job_id
        order by g.kind, g.key, g.job_id
    loop
        if _job.job_id <> jobq_private.hold_key(
            _job.kind, _job.queue, _job.key, _job.job_id
        ) then
            _barred := _barred || _job.job_id;
        end if;
    end loop;
    return _barred;
end
$$;

revoke all on function jobq_private.hold_old_keys from public;

comment on function jobq_private.hold_old_keys is
'Holds the idempotency keys of finished jobs that go back, and returns those that have to stay.';
