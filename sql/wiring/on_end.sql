-- Purpose: the hook on_end() of a full installation: slots of limits become free, and
-- those who wait for the jobs, and their batches, are noted to be looked at.
-- Invariant: see sql/job/private/on_end.sql. Takes no lock that others wait for, so the
-- transaction can be long. The next claim of any transaction resolves the rows of pending,
-- else maintain(). Signals, which have no index by job, stay for the retention of events.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void language plpgsql
-- All joins, since callers may allow themselves only some.
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off
set enable_bitmapscan = off set enable_hashjoin = on set enable_mergejoin = on
set enable_nestloop = on as $$
declare
    _limited jobq_private.ending[];
    _awaited jobq_private.ending[];
    _gone uuid[];
begin
    select
        array_agg(e) filter (where e.state is not null and num_nonnulls(e.key_id, e.slot) > 0),
        array_agg(e) filter (
            where e.state in ('succeeded', 'dead', 'cancelled')
            and (e.is_awaited or e.batch_id is not null)
        ),
        array_agg(e.job_id) filter (where e.is_gone)
    into _limited, _awaited, _gone
    from unnest(endings) as e;
    if _limited <> '{}' then
        perform jobq_private.leave_keys(_limited);
    end if;
    if _awaited <> '{}' then
        -- Edges that are committed later have a row of their own: see settle_edges(). The limits keep
        -- the planner from reading all edges for a join, whatever the statistics say.
        insert into jobq_private.pending (about, id)
        select 'parent', e.job_id
        from unnest(_awaited) as e
        where e.is_awaited and (
            select true from jobq_private.edge as d
            where d.parent = e.job_id and d.is_open
            limit 1
        )
        union all
        select 'call', e.job_id
        from unnest(_awaited) as e
        where (
            select true from jobq_private.edge as d
            where d.parent = e.job_id and d.after_failure in ('call', 'detach')
            limit 1
        )
        union all
        select 'caller', e.job_id
        from unnest(_awaited) as e
        where e.state = 'cancelled' and (
            select true from jobq_private.edge as d
            where d.child = e.job_id and d.after_failure = 'call'
            limit 1
        )
        union all
        select distinct 'batch', e.batch_id from unnest(_awaited) as e where e.batch_id is not null;
        perform jobq_private.wake(array(select distinct e.queue from unnest(_awaited) as e));
    end if;
    if _gone <> '{}' then
        with steps as (
            delete from jobq_private.step as s where s.job_id = any(_gone)
        ),
        chunks as (
            delete from jobq_private.stream_chunk as c where c.job_id = any(_gone)
        )
        delete from jobq_private.waiter as w where w.job_id = any(_gone);
    end if;
end
$$;
