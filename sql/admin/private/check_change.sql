-- Purpose: parse a change of waiting jobs, and refuse values that no new job could have.
-- Invariant: reads only. Looks up the payload schema of each kind; the depth limit of a
-- queue counts only jobs that come from another queue.
-- Raises: 22004, 22023, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_change(changes jsonb, job_ids uuid[])
returns jobq_private.new_job language plpgsql stable as $$
declare
    _known constant text[] := array[
        'run_at', 'priority', 'queue', 'payload', 'timeout', 'expires_at', 'max_attempts'
    ];
    _set jobq_private.new_job;
    _settings jobq_private.settings;
    _given jsonb;
    _mistyped text;
    _problem text[];
begin
    perform jobq_private.check_given('changes', num_nulls(changes));
    perform jobq_private.check_argument(case
        when jsonb_typeof(changes) <> 'object' or changes - _known <> '{}'
            or jsonb_strip_nulls(changes) = '{}'
        then format('changes must be an object with members among %s, one of them not null', _known)
    end);
    select
        jsonb_object_agg(c.key, c.value),
        min(format('%s must be a JSON %s', c.key, t.type)) filter (
            where c.key <> 'payload' and jsonb_typeof(c.value) <> t.type
        )
    into _given, _mistyped
    from jsonb_each(changes) as c
    cross join lateral (
        select case when c.key in ('priority', 'max_attempts') then 'number' else 'string' end
    ) as t (type)
    where c.value <> 'null';
    perform jobq_private.check_argument(_mistyped);
    _set := (jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', jsonb_build_array(_given), _known
    ))[1];
    for _set.kind in
        select j.kind from jobq_private.job as j where j.job_id = any(check_change.job_ids)
        union
        select '*'
    loop
        _settings := jobq_private.settings_for(_set.kind, _set.queue);
        if _set.payload is null then
            _settings.payload_schema := null;
            _settings.json_schema := null;
        end if;
        _problem := jobq_private.new_job_problem(_set, _settings);
        perform jobq_private.check_problem(_problem[1], _problem[2]);
    end loop;
    if _set.payload is not null then
        perform jobq_private.check_payload_change(check_change.job_ids, _set.payload);
    end if;
    perform jobq_private.check_problem('ILLEGAL_STATE', (
        select format(
            'job_id %s: %s of %s attempts are used; a waiting job needs one', j.job_id,
            j.attempt - j.uncounted, _set.max_attempts
        )
        from jobq_private.job as j
        where j.job_id = any(check_change.job_ids)
        and j.attempt - j.uncounted >= _set.max_attempts
        order by j.job_id
        limit 1
    ));
    if num_nonnulls(_set.run_at, _set.expires_at) > 0 then
        perform jobq_private.check_argument((
            select 'expires_at must be after run_at: job_id ' || min(j.job_id::text)
            from jobq_private.job as j
            where j.job_id = any(check_change.job_ids)
            and coalesce(_set.run_at, j.run_at) > clock_timestamp()
            and coalesce(_set.expires_at, j.expires_at) <= coalesce(_set.run_at, j.run_at)
            -- one that waits for an event or a paused endpoint may be due before its run_at
            and (_set.run_at is not null or j.run_at < jobq_private.parked_until() and not exists (
                select from jobq_private.waiter as w where w.job_id = j.job_id
            ))
        ));
    end if;
    if _set.queue is not null then
        perform jobq_private.check_queue_depth(check_change.job_ids, _set.queue);
    end if;
    return _set;
end
$$;
