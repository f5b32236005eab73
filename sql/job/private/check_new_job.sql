-- Purpose: refuse a new job that is not acceptable under the settings that hold for it.
-- Invariant: reads only; what its kind and queue do not ask for costs no query. Returns
-- true, so that it can stand in a condition; there it returns false, if may_be_false, for a job that
-- is not acceptable by itself, so that the error does not tell the whole statement.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_job(
    job jobq_private.new_job, settings jobq_private.settings, may_be_false boolean default false
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := jobq_private.json_size(job.payload)
        + jobq_private.json_size(job.metadata);
    _problem constant text[] := jobq_private.new_job_problem(
        job, _size, settings.max_payload_bytes, settings.max_payload_depth
    );
begin
    if _problem is not null and may_be_false then
        return false;
    elsif _problem is not null then
        perform jobq_private.raise_error(
            _problem[1], format('job %s: %s', job.ordinal, _problem[2])
        );
    end if;
    if num_nonnulls(settings.payload_schema, settings.json_schema) > 0 then
        if may_be_false and jobq_private.payload_schema_problem(array[job]) is not null then
            return false;
        end if;
        perform jobq_private.check_payload_schemas(array[job]);
    end if;
    if settings.concurrency_key is not null then
        perform jobq_private.check_concurrency_key(job, settings.concurrency_key);
    end if;
    if settings.max_depth is not null then
        perform jobq_private.check_queue_depth(array[job]);
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_new_job from public;

comment on function jobq_private.check_new_job is
'Refuses a new job that is not acceptable under the settings that hold for it.';
