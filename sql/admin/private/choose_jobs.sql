-- Purpose: lock the jobs that an operator has chosen, and return their ids.
-- Invariant: bounded, oldest first, locked in the order of ids, live jobs before
-- finished ones. Jobs named by id must all exist in one of the states; a filter selects
-- those in one of the states. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.choose_jobs(
    job_ids uuid[], queue text, kind text, metadata jsonb, max_jobs integer,
    dry_run boolean, reason text, states text[], state text default null
)
returns uuid[]
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
    _problem constant text := case
        when num_nonnulls(job_ids, queue, kind, nullif(metadata, '{}')) = 0
        then 'pass job_ids, queue, kind or metadata, not empty'
        when jsonb_typeof(metadata) <> 'object' then 'metadata must be a JSON object'
        when max_jobs not between 1 and 100000 or cardinality(job_ids) > max_jobs
        then 'max_jobs must be from 1 to 100000, and no fewer than the job_ids'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when state <> all(states) then 'state must be one of ' || array_to_string(states, ', ')
    end;
    _chosen uuid[];
    _missing uuid;
    _state text;
begin
    if num_nulls(max_jobs, dry_run) > 0
        or exists (select from unnest(job_ids) as g (job_id) where g.job_id is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'job_ids, max_jobs and dry_run');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
    if state is not null then
        states := array[state];
    end if;

    _chosen := array(
        select m.job_id
        from jobq_private.match_jobs(
            choose_jobs.states, '00000000-0000-0000-0000-000000000000',
            'ffffffff-ffff-ffff-ffff-ffffffffffff', choose_jobs.kind, choose_jobs.queue,
            choose_jobs.metadata, job_ids => choose_jobs.job_ids
        ) as m
        order by m.job_id
        limit choose_jobs.max_jobs
    );
    -- A job that has changed meanwhile is left out.
    _chosen := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_chosen) and j.state = any(choose_jobs.states)
        order by j.job_id
        for update
    ) || array(
        select a.job_id
        from jobq_private.job_archive as a
        where choose_jobs.states && '{succeeded,dead,cancelled}'
        and a.job_id = any(_chosen) and a.state = any(choose_jobs.states)
        order by a.job_id
        for update
    );

    for _missing in
        select m from unnest(choose_jobs.job_ids) as m where m <> all(_chosen) order by m
    loop
        _state := (jobq.get_job(_missing)).state;
        if _state <> all(states) then
            perform jobq_private.raise_error('ILLEGAL_STATE', format(
                'job_id %s is %s; it must be %s', _missing, _state,
                array_to_string(states, ' or ')
            ));
        end if;
    end loop;
    return _chosen;
end
$$;
