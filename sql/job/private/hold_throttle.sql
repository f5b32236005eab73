-- Purpose: the id under which a throttled dedup key makes a job: new_id, or that of the job which it
-- has made within its period. Any other job gets new_id.
-- Invariant: the row of the key decides between concurrent callers. Raises: 22004, 22023, JQ005,
-- JQ006, JQ010.
create or replace function jobq_private.hold_throttle(
    job jobq_private.new_job, new_id uuid, is_checked boolean
)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _settings jobq_private.settings;
begin
    select s.* into _settings from jobq_private.settings_for(job.kind, job.queue) as s;
    if coalesce(job.dedup, _settings.dedup) is distinct from 'throttle' then
        return new_id;
    end if;
    if not is_checked then
        perform jobq_private.check_new_job(job, _settings);
    end if;
    insert into jobq_private.throttle as t (kind, dedup_key, job_id, until)
    values (job.kind, job.dedup_key, new_id, now() + _settings.dedup_period)
    on conflict on constraint throttle_pkey do update
    set job_id = excluded.job_id, until = excluded.until
    where t.until <= now();
    return (
        select t.job_id from jobq_private.throttle as t
        where t.kind = job.kind and t.dedup_key = job.dedup_key
    );
end
$$;

revoke all on function jobq_private.hold_throttle from public;

comment on function jobq_private.hold_throttle is
'The id under which a throttled dedup key makes a job.';
