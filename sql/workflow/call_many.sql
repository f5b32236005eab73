-- Purpose: Calls jobs for many running jobs, and returns for each whether all jobs of its call
-- have ended, or that it was returned to its queue until then.
-- Invariant: as call_children(). All or none; rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
-- Argument calls: a JSON array parallel to job_ids: the children of each, as of start_children()
-- Column outcome: `arrived`, `waiting`, or `lost` if the attempt has lost its lease
-- Column ends: as of call_children()
-- Example: select outcome from jobq_internal.call_many(array[:'running']::uuid[], '{1}', '[[{"name": "search", "kind": "send_email", "payload": {"to": "a@b.c"}}]]');
create or replace function jobq_internal.call_many(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns table (job_id uuid, attempt integer, outcome text, ends jsonb) language plpgsql
security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp() + interval '36500 days';
    _children jobq_private.child_call[] := jobq_private.start_calls(
        call_many.job_ids, call_many.attempts, call_many.calls
    );
    _known uuid[] := array(select c.child_id from unnest(_children) as c where not c.is_new);
    _waiting uuid[];
begin
    with stored as (
        insert into jobq_private.waiter as w (job_id, event, deadline, needs_all)
        select c.job_id, 'job_ended:' || c.child_id, _until, true
        from unnest(_children) as c
        where c.is_new or (  -- no join, which could read all steps by a plan of an empty table
            select true from jobq_private.step as s
            where s.job_id = c.job_id and s.name = 'event:job_ended:' || c.child_id
            limit 1
        ) is null
        on conflict on constraint waiter_pkey do update set needs_all = true
        returning w.job_id
    )
    select coalesce(array_agg(distinct s.job_id), '{}') into _waiting from stored as s;
    if _known <> '{}' then
        -- As in wait_events(): of this transaction and that of an end, one sees the other.
        perform pg_advisory_xact_lock_shared(jobq_private.lock_class('expecting'), s.slot)
        from (
            select distinct hashtext('job_ended:' || k) & 1023 as slot
            from unnest(_known) as k order by 1
        ) as s;
        insert into jobq_private.pending (about, id)
        select 'call', k
        from unnest(_known) as k
        where current_setting('transaction_isolation') <> 'read committed'
        -- one that the login may not see may have ended
        or jobq_private.worked_queues() is not null and jobq_private.state_of(k) is null;
        _waiting := array(
            select w from unnest(_waiting) as w
            except
            select s from unnest(jobq_private.settle_calls(_waiting)) as s
        );
    end if;
    -- as release_many(); is_awaited, so that its end is followed: see on_end()
    update jobq_private.job as j
    set
        state = case when j.cancel_requested_at is null then 'queued' else 'cancelled' end,
        run_at = _until, is_awaited = true
    where j.job_id = any(_waiting);
    return query
    select
        a.job_id, a.attempt, a.outcome, case when a.outcome = 'arrived' then a.ends end
    from (
        select
            c.n, c.job_id, c.attempt,
            case when w.is_waiting then 'waiting' else 'arrived' end as outcome,
            jsonb_agg(s.value -> 'payload' order by c.place) as ends
        from unnest(_children) with ordinality
            as c (n, job_id, attempt, name, document, child_id, is_new, place)
        cross join lateral (
            select c.job_id in (select u from unnest(_waiting) as u) offset 0
        ) as w (is_waiting)
        left join jobq_private.step as s
            on s.job_id = c.job_id
            and s.name = 'event:job_ended:' || c.child_id
            and not w.is_waiting
        group by c.n, c.job_id, c.attempt, w.is_waiting
        union all
        select i.n, i.job_id, i.attempt, 'lost', null
        from unnest(call_many.job_ids, call_many.attempts)
            with ordinality as i (job_id, attempt, n)
        where i.n not in (select c.n from unnest(_children) as c)
    ) as a
    order by a.n;
end
$$;
grant execute on function jobq_internal.call_many to jobq_worker;
