-- Purpose: find waiting jobs whose keys have no open row (after a raw update or delete,
-- or a restore), open these keys, and return how many.
-- Invariant: derived from the rows of jobs only. Reads 1,000 keys per call, from where
-- the last call of any session ended. An unneeded open row is harmless: a claim closes
-- the key again.
create or replace function jobq_private.find_waiting_keys()
returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _at jobq_private.waiting_key;
    _job jobq_private.job;
    _rows jobq_private.waiting_key[];
begin
    _at := (
        select jsonb_populate_record(
            row(
                null, '00000000-0000-0000-0000-000000000000', '', null, null, -32768, null,
                null, null
            )::jobq_private.waiting_key, t.resume_at
        )
        from jobq_private.maintenance_task as t where t.task = 'opened_keys'
    );
    for _n in 1 .. 1000 loop
        select j.* into _job
        from jobq_private.job as j
        where j.key_id is not null and j.state in ('queued', 'retrying')
        and (j.queue, j.key_id, j.priority) > (_at.queue, _at.key_id, _at.priority)
        order by j.queue, j.key_id, j.priority, j.run_at, j.job_id
        limit 1;
        _at := row(
            null, _job.key_id, _job.queue,
            jobq_private.key_kind(_job.key_id, _job.queue, _job.concurrency_key, _job.kind),
            _job.concurrency_key, _job.priority, null, null, null
        );
        exit when _job.job_id is null;
        continue when exists (
            -- claims open these by themselves
            select from jobq_private.waiting_key as w
            where w.key_id = _at.key_id and w.queue = _at.queue and w.priority = _at.priority
            and (
                w.state = 'open' or w.limit_id is not null
                or w.state = 'later' and w.open_at <= _now
            )
        );
        if not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = _at.key_id and w.queue = _at.queue and w.priority = _at.priority
        )
            or _job.run_at <= _now
            and not exists (select from jobq_private.blocking_limits(_job, _now, 1))
        then
            _rows := _rows || _at;
        end if;
    end loop;
    perform jobq_private.open_again(_rows);
    update jobq_private.maintenance_task as t
    set resume_at = case when _at.key_id is not null then to_jsonb(_at) end
    where t.task = 'opened_keys';
    perform jobq_private.release_dead_keys(array(
        select h.dead_job_id
        from jobq_private.limit_hold as h
        where h.dead_job_id is not null
        order by random()
        limit 500
    ));
    perform jobq_private.number_running();
    return coalesce(cardinality(_rows), 0);
end
$$;
