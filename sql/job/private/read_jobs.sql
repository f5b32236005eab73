-- Purpose: read new jobs from a JSON array.
-- Invariant: refuses unknown members, so that no misspelt option is ignored, and null payloads,
-- which would read as missing. Raises: 22004, 22023.
create or replace function jobq_private.read_jobs(jobs jsonb, known text[])
returns jobq_private.new_job[]
language plpgsql
stable
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text;
    _ordinal bigint;
    _member text;
    _value jsonb;
begin
    if read_jobs.jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'jobs');
    elsif jsonb_typeof(read_jobs.jobs) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'jobs must be a JSON array');
    end if;

    select format('job %s: ', e.n) || case
        when e.job @> '{"payload": null}' then 'payload must not be null; the default is {}'
        else format('must be an object with members among %s', read_jobs.known)
    end
    into _problem
    from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
    where jsonb_typeof(e.job) <> 'object' or e.job - read_jobs.known <> '{}'
    or e.job @> '{"payload": null}'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;

    begin
        return array(
            select jsonb_populate_record(
                null::jobq_private.new_job, e.job || jsonb_build_object('ordinal', e.n)
            )
            from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
        );
    exception
        when data_exception then
            null;
    end;
    -- Which member it is takes a subtransaction for each.
    for _ordinal, _member, _value in
        select e.n, m.key, m.value
        from jsonb_array_elements(read_jobs.jobs) with ordinality as e (job, n)
        cross join lateral jsonb_each(e.job) as m
        where m.key not in ('payload', 'metadata')
        order by e.n, m.key
    loop
        begin
            perform jsonb_populate_record(
                null::jobq_private.new_job, jsonb_build_object(_member, _value)
            );
        exception
            when data_exception then
                _problem := format('job %s: %s: %s', _ordinal, _member, sqlerrm);
        end;
        exit when _problem is not null;
    end loop;
    perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    return null;
end
$$;
