-- Purpose: lock limits, and return the locked ones: all of them after waiting, or without waiting
-- those that no other transaction has locked. Each is given once.
-- Invariant: the only lock under which jobs start. A limit without a row gets one under an
-- advisory lock, so that no claim waits for another's insert. A repeatable snapshot that has not
-- seen the last charge fails here with 40001. Callers pin the planner's settings.
create or replace function jobq_private.lock_limits(scopes jobq_private.scope[], may_wait boolean)
returns uuid[] language plpgsql as $$
declare
    _making constant integer := jobq_private.lock_class('making');
    _ids constant uuid[] := array(select s.limit_id from unnest(scopes) as s);
    _locked uuid[];
begin
    if not may_wait then
        _locked := array(
            select g.limit_id
            from jobq_private.limit_state as g
            where g.limit_id = any(_ids)
            for update skip locked
        );
    end if;
    while cardinality(_locked) is distinct from cardinality(_ids) loop
        with made as (
            insert into jobq_private.limit_state (limit_id, queue, kind, concurrency_key)
            select m.limit_id, case when m.kind is null then m.queue end, m.kind, m.concurrency_key
            from (
                select s.*
                from unnest(lock_limits.scopes) as s
                where not exists (
                    select from jobq_private.limit_state as g where g.limit_id = s.limit_id
                )
                order by jobq_private.lock_slot(s.limit_id)
                offset 0
            ) as m
            where case
                when may_wait then pg_advisory_xact_lock(
                    _making, jobq_private.lock_slot(m.limit_id)
                )::text is not null
                else pg_try_advisory_xact_lock(_making, jobq_private.lock_slot(m.limit_id))
            end
            on conflict on constraint limit_state_pkey do nothing
            returning limit_id
        )
        -- nobody else sees these yet
        select _locked || array(select m.limit_id from made as m) into _locked;
        exit when not may_wait;
        -- once more if prune_limits() deletes one in between
        _locked := array(
            select g.limit_id
            from jobq_private.limit_state as g
            where g.limit_id = any(_ids)
            order by g.limit_id
            for update
        );
    end loop;
    return _locked;
end
$$;
