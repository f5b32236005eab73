-- Purpose: refuse a job whose kind takes its concurrency key from the payload, where what
-- stands there is no key.
-- Invariant: a path that names nothing, or null, means no key. Raises: JQ006.
create or replace function jobq_private.check_concurrency_key(
    job jobq_private.new_job, path text[]
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if job.concurrency_key is not null then
        return;
    elsif jsonb_typeof(job.payload #> path) in ('object', 'array') then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s is an %s, and no concurrency key', job.ordinal,
            '/' || array_to_string(path, '/'), jsonb_typeof(job.payload #> path)
        ));
    elsif octet_length(job.payload #>> path) not between 1 and 1024 then
        perform jobq_private.raise_error('PAYLOAD_INVALID', format(
            'job %s: %s: a concurrency key has 1 to 1024 bytes', job.ordinal,
            '/' || array_to_string(path, '/')
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_key from public;

comment on function jobq_private.check_concurrency_key is
'Refuses a payload that has no concurrency key where its kind looks for it.';
