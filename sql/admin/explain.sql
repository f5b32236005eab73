-- Purpose: Explains why a job is not running, with one row per reason.
-- Invariant: reads only; the most important reason first.
-- Raises: 22004, JQ001.
-- Column reason: blocked, held_up, paused, event, release, key_busy, queue_busy, kind_busy,
-- rate_limited, budget, held, ordered_behind, scheduled, backoff, no_function, no_worker,
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
    return query select s.reason, s.explanation from jobq_private.explain_state(_job) as s;
    if _job.state not in ('queued', 'retrying') then
        return;
    end if;

    return query select p.reason, p.explanation from jobq_private.explain_pauses(_job) as p;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    return query select b.reason, b.explanation
    from jobq_private.job as j
    cross join lateral jobq_private.blocking_limits(j, clock_timestamp()) as b
    where j.job_id = _job.job_id;
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', date_trunc('second', _job.run_at),
                date_trunc('second', _job.run_at - clock_timestamp()),
                case when _job.expires_at <= _job.run_at
                    then ', but expires before, at ' || date_trunc('second', _job.expires_at) end);
        return;
    end if;
    return query
    select w.reason, w.explanation from jobq_private.explain_workers(_job) as w
    union all
    select l.reason, l.explanation from jobq_private.explain_locks(_job.job_id) as l;
    return query select 'waiting', format('%s ahead of it in queue %s', case
        when a.jobs = 1 then '1 job is'
        when a.jobs > 10000 then '10000+ jobs are'
        else a.jobs || ' jobs are'
    end, j.queue)
    from jobq_private.job as j
    cross join lateral jobq_private.jobs_ahead(
        j.queue, j.priority, coalesce(j.due_at, j.run_at), j.job_id
    ) as a (jobs)
    where j.job_id = _job.job_id;
end
$$;

grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;
