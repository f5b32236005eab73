-- Purpose: the live job that has the dedup key, or the new id once the key may be tried again.
-- Invariant: replace cancels a job that waits, and never one that runs: then the new job is
-- refused, but for a schedule's slot, for which the running one stands. debounce changes one that
-- has not begun.
-- Raises: JQ004.
create or replace function jobq_private.yield_dedup_key(
    job jobq_private.new_job, new_id uuid, out job_id uuid, out created boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _state text;
    _dedup text;
begin
    select j.job_id, j.state into job_id, _state
    from jobq_private.job as j
    where j.kind = job.kind
    and j.dedup_key = job.dedup_key
    order by j.state = 'running' desc, j.dedup is null, j.job_id
    limit 1;

    created := not found;
    if not created then
        select coalesce(job.dedup, s.dedup) into _dedup
        from jobq_private.settings_for(job.kind, job.queue) as s;
        created := _state <> 'running' and _dedup = 'replace';
        if _state = 'running' and _dedup = 'replace' and job.schedule_id is null then
            perform jobq_private.raise_error('DEDUP_CONFLICT', format(
                'kind %s, dedup_key %s: job_id %s runs', job.kind, job.dedup_key, job_id
            ));
        end if;
    end if;
    if not created and _dedup = 'debounce' then
        perform jobq_private.put_off(job_id, job);
    elsif created then
        update jobq_private.job as j
        set
            state = 'cancelled',
            cancel_reason = 'replaced by ' || yield_dedup_key.new_id
        where j.job_id = yield_dedup_key.job_id and j.state in ('blocked', 'queued', 'retrying');
        job_id := yield_dedup_key.new_id;
    end if;
end
$$;

revoke all on function jobq_private.yield_dedup_key from public;

comment on function jobq_private.yield_dedup_key is
'Finds the live job that holds a dedup key, or makes room for the one that replaces it.';
