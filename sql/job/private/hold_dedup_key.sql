-- Purpose: the id under which a dedup key makes a job: new_id, or for a throttled one that of the job
-- which it has made within its period; for one that looks at live jobs that of a job which itself
-- looked at none, and so is held by no index.
-- Invariant: the row of the key decides between concurrent callers that throttle. Raises: 22004,
-- 22023, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.hold_dedup_key(
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
    _dedup text;
    _holder uuid;
    _is_free boolean;
begin
    select s.* into _settings from jobq_private.settings_for(job.kind, job.queue) as s;
    _dedup := coalesce(job.dedup, _settings.dedup, 'enqueue');
    if _dedup = 'enqueue' or (_dedup <> 'throttle' and not exists (
        select from jobq_private.job as j
        where j.kind = job.kind and j.dedup_key = job.dedup_key and j.dedup is null
    )) then
        return new_id;
    end if;
    if not is_checked then
        perform jobq_private.check_new_job(job, _settings);
    end if;
    if _dedup <> 'throttle' then
        loop
            select y.job_id, y.created into _holder, _is_free
            from jobq_private.yield_dedup_key(job, new_id) as y;
            exit when not _is_free or not exists (
                select from jobq_private.job as j
                where j.kind = job.kind and j.dedup_key = job.dedup_key
            );
        end loop;
        return _holder;
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

revoke all on function jobq_private.hold_dedup_key from public;

comment on function jobq_private.hold_dedup_key is
'The id under which a dedup key makes a job.';
