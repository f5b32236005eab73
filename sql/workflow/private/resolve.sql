-- Purpose: do what follows from the ends of jobs: release their children or cancel them, end
-- batches.
-- Invariant: waits for no lock. What is locked, or not to be seen, is left with its look, at
-- which somebody looks again after 10 ms, later after up to a second. A look is taken away
-- only after a new snapshot has shown that nothing is left to do, by who has the rows of
-- children and batches; so whoever is killed strands nothing, and what two do at once is done
-- once. A repeatable snapshot is too old for that. Bounded: no round begins after 200 ms, or while
-- nothing has moved after patience; what there was no time for stays due. Tells claim() by
-- jobq.resolved that this statement has had its share. Batches are left to who works all queues,
-- as members may be in any. Returns how many jobs were released or cancelled. Raises: nothing.
create or replace function jobq_private.resolve(
    max_looks integer default 1000, patience interval default '200 ms'
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
declare
    _queues constant text[] := jobq_private.worked_queues();
    _began constant timestamptz := clock_timestamp();
    _looks tid[];
    _parents uuid[];
    _children uuid[];
    _batches uuid[];
    _left uuid[] := array[]::uuid[];
    _in_batches bigint;
    _moved bigint := 0;
    _now bigint;
    _closed bigint;
begin
    perform set_config('jobq.looks', '', true);
    perform set_config('jobq.resolved', statement_timestamp()::text, true);
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    loop
        select
            array_agg(l.ctid),
            coalesce(array_agg(l.id) filter (where l.about = 'parent'), '{}'),
            coalesce(array_agg(l.id) filter (where l.about = 'child'), '{}'),
            array_agg(distinct l.id) filter (where l.about = 'batch')
        into _looks, _parents, _children, _batches
        from (
            select k.ctid, k.about, k.id
            from jobq_private.look as k
            where k.look_at <= clock_timestamp()
            order by k.look_id
            limit resolve.max_looks
            for update skip locked
        ) as l;
        exit when _looks is null;
        _now := 0;
        _closed := 0;
        if _children <> '{}' then
            perform jobq_private.await_parents(_children, _queues);
        end if;
        if _children <> '{}' or _parents <> '{}' then
            select s.moved, s.closed into _now, _closed
            from jobq_private.settle_edges(_parents, _children, _queues) as s;
        end if;
        if _batches is not null and _queues is null then
            select s.moved, s.left_alone into _in_batches, _left
            from jobq_private.settle_batches(_batches) as s;
            _now := _now + _in_batches;
        end if;
        perform jobq_private.end_looks(
            _looks, _parents, _children, _left, _queues, _now + _closed > 0
        );
        _moved := _moved + _now;
        exit when clock_timestamp() - _began > case
            when _moved = 0 then resolve.patience else interval '200 ms'
        end;
    end loop;
    return _moved;
end
$$;

revoke all on function jobq_private.resolve from public;

comment on function jobq_private.resolve is
'Releases or cancels the children of jobs that have ended, and ends batches.';
