-- Purpose: read new jobs that a caller gives as a JSON array.
-- Invariant: an unknown member is refused, so that no misspelt option is passed over. Planned
-- once: a plan made for the batch as a constant copies it several times. Reads nothing.
-- Raises: 22004, 22023.
create or replace function jobq_private.read_jobs(jobs jsonb, known text[])
returns jobq_private.new_job[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text;
begin
    if read_jobs.jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'jobs');
    elsif jsonb_typeof(read_jobs.jobs) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'jobs must be a JSON array');
    end if;

    select format('job %s: must be an object with members among %s', e.n, read_jobs.known)
    into _problem
    from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
    where jsonb_typeof(e.job) <> 'object' or e.job - read_jobs.known <> '{}'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;

    return array(
        select jsonb_populate_record(
            row(
                e.n, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null, null, null, null, null
            )::jobq_private.new_job, e.job
        )
        from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
    );
end
$$;

revoke all on function jobq_private.read_jobs from public;

comment on function jobq_private.read_jobs is
'Reads new jobs that a caller gives as a JSON array.';
