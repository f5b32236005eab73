-- Purpose: make jobs due that wait for the ends of these called jobs, and wake their queues.
-- Returns those of which callers must be looked at again. New ones have ended in this transaction.
-- Invariant: waits for no lock. Skips callers that run, retry or have ended: they look for the ends
-- themselves. A transaction that ends a job and one that begins to wait for it do not see each
-- other's rows: so a new end is looked at again after the commit, unless each caller waits and is
-- locked. Callers of this function pin the planner's settings.
create or replace function jobq_private.release_callers(child_ids uuid[], new uuid[])
returns uuid[]
language plpgsql
as $$
declare
    -- Before it reads the waiters, so that these include the rows of those that ended.
    _open constant uuid[] := new || array(
        select c
        from unnest(child_ids) as c
        where c not in (select n from unnest(new) as n)
        and jobq_private.is_locked('expecting', hashtext('job_ended:' || c) & 1023)
    );
    _callers uuid[];
    _children uuid[];
    _needs_all boolean[];
    _held uuid[] := '{}';
    _due uuid[];
    _calling uuid[];
begin
    -- The limits keep the planner from reading whole tables, whatever the statistics say.
    select array_agg(e.child), array_agg(e.parent), array_agg(e.needs_all)
    into _callers, _children, _needs_all
    from (
        select e.child, e.parent, (
            select w.needs_all
            from jobq_private.waiter as w
            where w.job_id = e.child and w.event = 'job_ended:' || e.parent
            limit 1
        ) as needs_all
        from jobq_private.edge as e
        where e.parent = any(child_ids) and e.after_failure in ('call', 'detach')
    ) as e;
    if _callers is null then
        return '{}'::uuid[];
    end if;
    -- A snapshot of the whole transaction, or a login with some queues, does not see all children.
    if current_setting('transaction_isolation') = 'read committed'
        and jobq_private.worked_queues() is null
    then
        _held := array(
            select j.job_id
            from jobq_private.job as j
            where j.job_id = any(_callers)
            and j.state = 'queued' and j.run_at > clock_timestamp()
            for no key update skip locked
        );
        select
            array_agg(e.caller) filter (where not e.needs_all),
            array_agg(distinct e.caller) filter (where e.needs_all)
        into _due, _calling
        from unnest(_callers, _needs_all) as e (caller, needs_all)
        where e.caller in (select h from unnest(_held) as h);
        _due := _due || jobq_private.settle_calls(_calling);
    end if;
    if _due <> '{}' then
        update jobq_private.job as j set run_at = least(j.run_at, clock_timestamp())
        where j.job_id = any(_due);
        perform jobq_private.announce_jobs(_due);
    end if;
    return array(
        select distinct e.child_id
        from unnest(_callers, _children, _needs_all) as e (caller, child_id, needs_all)
        where e.caller not in (select h from unnest(_held) as h)
        and (e.child_id in (select o from unnest(_open) as o) or e.needs_all is not null and exists (
            select from jobq_private.job as j
            where j.job_id = e.caller and j.state = 'queued' and j.run_at > clock_timestamp()
        ))
    );
end
$$;
