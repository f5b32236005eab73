-- Purpose: Enqueues a copy of a job that takes over the steps recorded before one of them,
-- and returns its id.
-- Invariant: the copy is as that of rerun(), with fork_of in its metadata; the job stays as
-- it is, and can be live. What it has called before the step is not called again. Streams,
-- and messages and signals that it has not received, are not copied.
-- Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Argument from_step: the first step that the copy runs again, as list_steps() names it; null
-- takes over all
-- Returns: the id of the new job.
-- Example: select jobq.fork(:'running');
create or replace function jobq.fork(job_id uuid, from_step text default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job constant jobq.job := jobq.get_job(fork.job_id);
    _from timestamptz := timestamptz 'infinity';
    _copy_id uuid;
begin
    if fork.from_step is not null then
        _from := (
            select s.saved_at from jobq_private.step as s
            where s.job_id = _job.job_id and s.name = fork.from_step
        );
        perform jobq_private.check_argument(case when _from is null
            then format('from_step must be a recorded step of job_id %s', _job.job_id) end);
    end if;
    _copy_id := (jobq_private.store_jobs(array[
        jobq_private.copy_of(_job, jsonb_build_object('fork_of', _job.job_id))
    ])).ids[1];
    -- sleeps and messages have the job's id in their names
    with copied as (
        insert into jobq_private.step (job_id, name, value, attempt, saved_at)
        select
            _copy_id, replace(s.name, _job.job_id::text, _copy_id::text),
            case
                when s.name like 'event:%' and s.value ? 'event' then jsonb_set(
                    s.value, '{event}',
                    to_jsonb(replace(s.value ->> 'event', _job.job_id::text, _copy_id::text))
                )
                else s.value
            end,
            s.attempt, s.saved_at
        from jobq_private.step as s
        where s.job_id = _job.job_id
        and (s.saved_at, s.name) < (_from, coalesce(fork.from_step, ''))
        returning name, value
    )
    -- the messages that were received, so that the next one gets the next number
    insert into jobq_private.event (event, job_id, payload)
    select e.event, _copy_id, c.value -> 'payload'
    from copied as c
    cross join lateral (select coalesce(c.value ->> 'event', substr(c.name, 7)) as event) as e
    where c.name like 'event:%' and c.value @> '{"outcome": "arrived"}'
    and starts_with(e.event, format('message:%s:', _copy_id))
    on conflict on constraint event_pkey do nothing;
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select _copy_id, e.parent, 'detach', false
    from jobq_private.edge as e
    where e.child = _job.job_id and e.after_failure in ('call', 'detach');
    perform jobq_private.record_audit('fork', _job.job_id::text, fork.from_step);
    return _copy_id;
end
$$;
grant execute on function jobq.fork to jobq_operator;
