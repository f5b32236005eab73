-- Purpose: find waiting jobs whose keys have no open row (after a raw update or delete, or a
-- restore), open these keys, and return how many.
-- Invariant: derived from the rows of jobs only. Reads 1,000 keys per call, from where the last
-- call of any session ended. An unneeded open row is harmless: a claim closes the key again.
create or replace function jobq_private.find_waiting_keys()
returns bigint language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _now constant timestamptz := clock_timestamp();
    _job jobq_private.job := (
        select jsonb_populate_record(null::jobq_private.job, coalesce(
            t.resume_at,
            '{"queue": "", "key_id": "00000000-0000-0000-0000-000000000000", "priority": -32768}'
        ))
        from jobq_private.maintenance_task as t where t.task = 'opened_keys'
    );
    _jobs uuid[] := '{}'::uuid[];
    _keys uuid[] := '{}'::uuid[];
begin
    for _n in 1 .. 1000 loop
        select j.* into _job
        from jobq_private.job as j
        where j.key_id is not null and j.state in ('queued', 'retrying')
        and (j.queue, j.key_id, j.priority) > (_job.queue, _job.key_id, _job.priority)
        order by j.queue, j.key_id, j.priority, j.run_at, j.job_id
        limit 1;
        exit when _job.job_id is null;
        continue when exists (
            -- claims open these by themselves
            select from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.queue = _job.queue and w.priority = _job.priority
            and (w.full_kind is not null or w.state <> 'full' and w.open_at <= _now)
        );
        if not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = _job.key_id and w.queue = _job.queue and w.priority = _job.priority
        )
            or _job.run_at <= _now
            and not exists (select from jobq_private.blocking_limits(_job, _now))
        then
            _jobs := _jobs || _job.job_id;
            _keys := _keys || _job.key_id;
        end if;
    end loop;
    perform jobq_private.open_keys(_jobs, _keys);
    update jobq_private.maintenance_task as t
    set resume_at = case when _job.job_id is not null then jsonb_build_object(
        'queue', _job.queue, 'key_id', _job.key_id, 'priority', _job.priority
    ) end
    where t.task = 'opened_keys';
    perform jobq_private.release_dead_keys(array(
        select h.dead_job_id
        from jobq_private.limit_hold as h
        where h.dead_job_id is not null
        order by random()
        limit 500
    ));
    perform jobq_private.number_running();
    return cardinality(_jobs);
end
$$;
