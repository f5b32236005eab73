-- Purpose: make jobs that have become due known to their keys, and wake workers of their
-- queues.
-- Invariant: the caller has changed the jobs.
create or replace function jobq_private.announce_jobs(job_ids uuid[])
returns void
language plpgsql
as $$
declare
    _queues text[];
    _keyed uuid[];
begin
    select array_agg(distinct j.queue), array_agg(j.job_id) filter (where j.key_id is not null)
    into _queues, _keyed
    from jobq_private.job as j
    where j.job_id = any(announce_jobs.job_ids);
    if _keyed <> '{}' then
        perform jobq_private.open_keys(_keyed);
    end if;
    perform jobq_private.wake(coalesce(_queues, '{}'));
end
$$;
