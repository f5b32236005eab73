-- Purpose: lock the jobs that an operator has chosen, and return their ids.
-- Invariant: bounded, oldest first, locked in the order of ids, live jobs before
-- finished ones. Jobs named by id must all exist in one of the states; a filter selects
-- those in one of the states. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.choose_jobs(
    job_ids uuid[], queue text, kind text, metadata jsonb, max_jobs integer,
    dry_run boolean, reason text, states text[], state text default null
)
returns uuid[] language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
    _chosen uuid[];
begin
    perform jobq_private.check_given(
        'job_ids, max_jobs and dry_run',
        num_nulls(max_jobs, dry_run)
        + (select count(*) from unnest(job_ids) as g (job_id) where g.job_id is null)::integer
    );
    perform jobq_private.check_argument(case
        when num_nonnulls(job_ids, queue, kind, nullif(metadata, '{}')) = 0
        then 'pass job_ids, queue, kind or metadata, not empty'
        when jsonb_typeof(metadata) <> 'object' then 'metadata must be a JSON object'
        when max_jobs not between 1 and 100000 or cardinality(job_ids) > max_jobs
        then 'max_jobs must be from 1 to 100000, and no fewer than the job_ids'
        when length(reason) > 512 then 'reason must have at most 512 characters'
        when state <> all(states) then 'state must be one of ' || array_to_string(states, ', ')
    end);
    states := case when state is null then states else array[state] end;
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
    perform jobq_private.check_problem('ILLEGAL_STATE', (
        select format('job_id %s is %s; it must be %s', j.job_id, j.state,
            array_to_string(states, ' or '))
        from unnest(choose_jobs.job_ids) as m (job_id)
        cross join lateral jobq.get_job(m.job_id) as j
        where m.job_id <> all(_chosen) and j.state <> all(states)
        order by j.job_id
        limit 1
    ));
    return _chosen;
end
$$;
