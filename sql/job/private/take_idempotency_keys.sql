-- Purpose: take the idempotency keys of a batch, and return the job that each key stands for: the
-- given one if the key was free or missing.
-- Invariant: keys are locked in the order of kind and key, so batches cannot deadlock. Of several
-- jobs with one key, the first gets it.
create or replace function jobq_private.take_idempotency_keys(
    job_ids uuid[], kinds text[], queues text[], keys text[]
)
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _holders uuid[] := job_ids;
    _job record;
begin
    for _job in
        with given as materialized (
            select g.*
            from unnest(job_ids, kinds, queues, keys)
                with ordinality as g (job_id, kind, queue, key, n)
            where g.key is not null
        ),
        held as (
            insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
            select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
            from given as g
            order by g.kind, g.key, g.n
            on conflict on constraint idempotency_key_pkey do nothing
            returning k.job_id
        )
        select g.*
        from given as g
        where g.job_id not in (select h.job_id from held as h)  -- hashed
        -- A job that is redriven has its key already.
        and g.job_id is distinct from (
            select k.job_id
            from jobq_private.idempotency_key as k
            where k.kind = g.kind and k.idempotency_key = g.key
        )
        order by g.kind, g.key, g.n
    loop
        _holders[_job.n] := jobq_private.take_idempotency_key(
            _job.kind, _job.queue, _job.key, _job.job_id
        );
    end loop;
    return _holders;
end
$$;
