-- Purpose: why a new job is invalid by itself or under its settings: the error's code and detail,
-- or null. Reads no table. Raises: by its callers, 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.new_job_problem(
    job jobq_private.new_job, settings jobq_private.settings
)
returns text[] language plpgsql stable as $$
declare
    _invalid text;
    _problem text[];
begin
    if job.kind is null then
        return array['NULL_ARGUMENT', format('job %s: kind', job.ordinal)];
    end if;
    job.dedup_key := coalesce(job.dedup_key, case when settings.dedup_key is not null
        then jobq_private.payload_key(job.payload, settings.dedup_key) end);
    if job.dedup_key is not null and coalesce(job.dedup, settings.dedup) = 'debounce' then
        job.run_at := coalesce(
            job.run_at, now() + least(settings.dedup_period, settings.dedup_max_wait)
        );
    end if;
    _invalid := case
        when length(job.kind) not between 1 and 128 then 'kind must have 1 to 128 characters'
        when length(job.queue) not between 1 and 128 or right(job.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        -- Most jobs have none of these options. PostgreSQL makes an expression ready as a whole.
        when num_nonnulls(
            job.run_at, job.priority, job.max_attempts, job.timeout, job.metadata,
            job.idempotency_key, job.dedup_key, job.dedup, job.concurrency_key, job.expires_at,
            job.after_failure, job.cost
        ) > 0 then jobq_private.invalid_option(job)
    end;
    if _invalid is not null then
        _problem := array['INVALID_ARGUMENT', _invalid];
    elsif job.metadata is not null
        or not jobq_private.is_small(job.payload, settings.max_payload_depth)
    then
        _problem := coalesce(
            jobq_private.value_problem(
                job.payload, settings.max_payload_bytes, settings.max_payload_depth
            ),
            jobq_private.value_problem(
                job.metadata, settings.max_payload_bytes, settings.max_payload_depth,
                coalesce(octet_length(job.payload::text), 0)
            )
        );
    end if;
    if _problem is null and num_nonnulls(
        settings.payload_schema, settings.json_schema, settings.concurrency_key, settings.cost
    ) > 0 then
        _invalid := jobq_private.payload_problem(job, settings);
        _problem := case when _invalid is not null then array['PAYLOAD_INVALID', _invalid] end;
    end if;
    return case when _problem is not null then array[_problem[1], format('job %s%s: %s',
        job.ordinal, case when _problem[1] = 'PAYLOAD_INVALID' then ', kind ' || job.kind end,
        _problem[2]
    )] end;
end
$$;
