-- Purpose: report why a job is not running.
-- Invariant: reads only; one row per reason, the most important first.
-- Raises: 22004, JQ001.
-- Returns: one row per reason.
-- Column reason: blocked, held_up, paused, event, key_busy, queue_busy, kind_busy,
-- rate_limited, held, ordered_behind, scheduled, backoff, no_function, no_worker,
-- unknown_kind, slots_lost, locked, waiting, running or finished.
-- Column explanation: a description with details.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
begin
    return query
    select s.reason, s.explanation from jobq_private.explain_state(_job) as s;
    if _job.state not in ('queued', 'retrying') then
        return;
    end if;

    return query select p.reason, p.explanation from jobq_private.explain_pauses(_job) as p;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    return query
    select 'event', format(
        'waits for %s since %s%s', w.event, date_trunc('second', w.since),
        case when isfinite(w.deadline) then ', until ' || date_trunc('second', w.deadline) end
    )
    from jobq_private.waiter as w
    where w.job_id = _job.job_id
    and w.deadline > clock_timestamp() and _job.run_at > clock_timestamp()
    order by w.since;
    return query
    select b.reason, b.explanation
    from jobq_private.job as j
    cross join lateral jobq_private.blocking_limits(j, clock_timestamp()) as b
    where j.job_id = _job.job_id;
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', date_trunc('second', _job.run_at),
                date_trunc('second', _job.run_at - clock_timestamp()),
                case when _job.expires_at <= _job.run_at
                    then format(', but expires before, at %s',
                        date_trunc('second', _job.expires_at)) end);
        return;
    end if;
    return query
    select w.reason, w.explanation from jobq_private.explain_workers(_job) as w;
    return query
    select 'locked', format(
        '%s has claimed or locked it and has not committed',
        coalesce('the transaction of process ' || l.pid, 'a prepared transaction')
    )
    from jobq_private.job as j
    join pg_locks as l
        on l.locktype = 'transactionid' and l.transactionid = j.xmax and l.granted
    where j.job_id = _job.job_id and l.pid is distinct from pg_backend_pid();
    return query
    select 'locked', format(
        '%s: %s has claimed, and has not committed', l.scope,
        coalesce('the transaction of process ' || l.pid, 'a prepared transaction')
    )
    from jobq_private.limit_locks(_job.job_id) as l;
    return query select 'waiting', format(
        '%s ahead of it in queue %s',
        case
            when a.jobs = 1 then '1 job is'
            when a.jobs > 10000 then '10000+ jobs are'
            else a.jobs || ' jobs are'
        end, _job.queue
    )
    from jobq_private.jobs_ahead(
        _job.queue, _job.priority,
        coalesce(
            (select j.due_at from jobq_private.job as j where j.job_id = _job.job_id), _job.run_at
        ),
        _job.job_id
    ) as a (jobs);
end
$$;

grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;

comment on function jobq.explain is
'Explains why a job is not running: blocked by other jobs, paused, an event, a limit, a rate, a hold, scheduled, backoff, no_function, no_worker, unknown_kind, slots_lost, locked, waiting, running or finished.';
