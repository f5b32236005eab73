-- Purpose: take the idempotency keys of finished jobs that are to be redriven, and return the jobs
-- whose key belongs to another job. Callers pin the planner's settings.
create or replace function jobq_private.bar_redrives(
    job_ids uuid[], finished_ats timestamptz[]
)
returns uuid[]
language plpgsql
as $$
declare
    _keyed uuid[];
    _holders uuid[];
begin
    select array_agg(k.job_id), jobq_private.take_idempotency_keys(
        array_agg(k.job_id), array_agg(k.kind), array_agg(k.idempotency_key)
    )
    into _keyed, _holders
    from (
        select a.job_id, a.kind, a.idempotency_key
        from unnest(bar_redrives.job_ids, bar_redrives.finished_ats) as c (job_id, finished_at)
        join jobq_private.job_archive as a
            on a.job_id = any(bar_redrives.job_ids) and a.job_id = c.job_id
            and a.finished_at = c.finished_at
            and a.finished_at between (select min(f) from unnest(finished_ats) as f)
            and (select max(f) from unnest(finished_ats) as f)
        where a.idempotency_key is not null
        order by a.job_id
    ) as k
    having count(*) > 0;
    return array(
        select k.job_id from unnest(_keyed, _holders) as k (job_id, holder)
        where k.job_id <> k.holder
    );
end
$$;
