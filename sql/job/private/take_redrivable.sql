-- Purpose: lock finished jobs that are to be redriven, take their idempotency keys, and return
-- those that can be redriven: dead or cancelled, and no other job has their key.
-- Invariant: locks them in the order of their ids. Callers pin the planner's settings.
create or replace function jobq_private.take_redrivable(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[] language plpgsql as $$
declare
    _locked uuid[];
    _holders uuid[];
begin
    select array_agg(k.job_id), jobq_private.take_idempotency_keys(
        array_agg(k.job_id), array_agg(k.kind), array_agg(k.idempotency_key)
    )
    into _locked, _holders
    from (
        select a.job_id, a.kind, a.idempotency_key
        from unnest(take_redrivable.job_ids, finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(take_redrivable.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at
            and a.finished_at between (select min(f) from unnest(finished_ats) as f)
            and (select max(f) from unnest(finished_ats) as f)
        where (a.state in ('dead', 'cancelled')) is true
        order by a.job_id
        for update of a
    ) as k
    having count(*) > 0;
    return array(
        select k.job_id from unnest(_locked, _holders) as k (job_id, holder)
        where k.job_id = k.holder
    );
end
$$;
