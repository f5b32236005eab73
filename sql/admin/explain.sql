-- Purpose: Explains why a job is not running, with one row per reason.
-- Invariant: reads only; the most important reason first. Raises: 22004, JQ001.
-- Column reason: blocked, held_up, paused, event, release, key_busy, queue_busy, kind_busy,
-- rate_limited, budget, held, ordered_behind, scheduled, backoff, no_function, no_worker,
-- unknown_kind, slots_lost, locked, waiting, running or finished.
-- Column explanation: a description with details.
-- Example: select * from jobq.explain(:'waiting');
create or replace function jobq.explain(job_id uuid)
returns table (reason text, explanation text) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(explain.job_id);
    _live jobq_private.job;
begin
    return query select s.reason, s.explanation from jobq_private.explain_state(_job) as s;
    if _job.state not in ('queued', 'retrying') then
        return;
    end if;

    return query select p.reason, p.explanation from jobq_private.explain_pauses(_job) as p;
    if found and _job.run_at = jobq_private.parked_until() then
        return;
    end if;
    select j.* into _live from jobq_private.job as j where j.job_id = _job.job_id;
    if _live.concurrency_key is not null then
        -- its kind may have got or lost limits for each key since it was stored
        _live.key_id := jobq_private.key_of(_live.queue, _live.kind, _live.concurrency_key, false);
    end if;
    return query
    with own as materialized (
        select b.* from jobq_private.blocking_limits(_live, clock_timestamp()) as b
    )
    select o.reason, o.explanation from own as o
    union all
    select 'budget', f.explanation from jobq_private.explain_first(_live) as f (explanation)
    where not exists (select from own as o where o.reason = 'budget');
    if _job.run_at > clock_timestamp() then
        return query select
            case _job.state when 'retrying' then 'backoff' else 'scheduled' end,
            format('runs at %s, in %s%s', date_trunc('second', _job.run_at),
                date_trunc('second', _job.run_at - clock_timestamp()),
                case when _job.expires_at <= _job.run_at
                    then ', but expires before, at ' || date_trunc('second', _job.expires_at) end)
        where _job.expires_at <= _job.run_at or not exists (
            -- the reason event gives its deadline
            select from jobq_private.waiter as w
            where w.job_id = _job.job_id and w.deadline = _job.run_at
        );
        return;
    end if;
    return query
    select w.reason, w.explanation from jobq_private.explain_workers(_job) as w
    union all
    select l.reason, l.explanation from jobq_private.explain_locks(_job.job_id) as l;
    return query select 'waiting', format('%s in queue %s%s', case
        when a.jobs = 0 then 'no job is ahead of it'
        when a.jobs = 1 then '1 job is ahead of it'
        when a.jobs > 10000 then '10000+ jobs are ahead of it'
        else a.jobs || ' jobs are ahead of it'
    end, _live.queue, ', concurrency_key ' || _live.concurrency_key)
    from jobq_private.jobs_ahead(_live) as a (jobs);
end
$$;
grant execute on function jobq.explain to jobq_producer, jobq_operator, jobq_reader;
