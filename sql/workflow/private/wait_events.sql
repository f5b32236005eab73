-- Purpose: wait_for() and wait_any(): the result of a job's wait for the first of some events,
-- recorded under a name; null if the job was returned to its queue until one comes.
-- Invariant: as wait_for(). Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.wait_events(
    job_id uuid, attempt integer, name text, events text[], timeout interval
)
returns jsonb language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _events constant text[] := array(select distinct e from unnest(events) as e);
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_argument(case
        when (array_ndims(events) = 1 and cardinality(events) <= 100) is not true
        then 'events must be 1 to 100'
        when wait_events.timeout not between '0' and '36500 days'
        then 'timeout must be between 0 and 36500 days'
    end);
    perform jobq_private.check_event(e, 'null') from unnest(name || events) as e;
    perform jobq_private.lock_attempt(wait_events.job_id, wait_events.attempt);

    select s.value into _end
    from jobq_private.step as s
    where s.job_id = wait_events.job_id and s.name = 'event:' || wait_events.name;
    if found then
        return _end;
    end if;
    perform jobq_private.check_argument((
        select 'job_ended: needs the id of a job that this one has called'
        from unnest(_events) as e
        where starts_with(e, 'job_ended:') and not exists (
            select from jobq_private.edge as d
            where d.child = wait_events.job_id
            and d.parent = jobq_private.ended_job(e)
            and d.after_failure in ('call', 'detach')
        )
        limit 1
    ));
    -- As in store_event(): an emit takes a lock of its own class, and one of the two sees
    -- the other.
    perform pg_advisory_xact_lock_shared(jobq_private.lock_class('expecting'), s.slot)
    from (select distinct hashtext(e) & 1023 as slot from unnest(_events) as e order by 1) as s;
    with stored as (
        insert into jobq_private.waiter as w (job_id, event, deadline)
        select
            wait_events.job_id, e,
            clock_timestamp() + coalesce(wait_events.timeout, interval '36500 days')
        from unnest(_events) as e
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline
    )
    select min(s.deadline) into _due from stored as s;
    insert into jobq_private.pending (about, id, event)
    select
        case when c.job_id is null then 'event' else 'call' end,
        coalesce(c.job_id, wait_events.job_id), case when c.job_id is null then e end
    from unnest(_events) as e
    cross join lateral (select jobq_private.ended_job(e)) as c (job_id)
    where jobq_private.is_locked('emitting', hashtext(e) & 1023)
    or current_setting('transaction_isolation') <> 'read committed'
    -- one that the login may not see may have ended
    or c.job_id is not null and jobq_private.worked_queues() is not null
    and jobq_private.state_of(c.job_id) is null;
    _end := jobq_private.settle_wait(job_id, attempt, name, _events);
    if _end is null then
        perform jobq.release(wait_events.job_id, wait_events.attempt, _due);
    end if;
    return _end;
end
$$;
