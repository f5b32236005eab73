-- Purpose: what the ends of jobs bring about: traces are forgotten, lanes called, looks left.
-- Invariant: the caller has ended these jobs in its transaction. Returns which of them left no
-- trace, null for none. Raises: nothing.
create or replace function jobq_private.follow_endings(
    endings jobq_private.ending[], out gone uuid[], out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queues text[];
    _lanes uuid[];
    _kinds text[];
    _keys text[];
    _awaited jobq_private.ending[];
begin
    select
        array_agg(e.job_id) filter (where e.leaves_nothing),
        array_agg(e.attempt) filter (where e.leaves_nothing),
        array_agg(e.queue) filter (where e.has_place),
        array_agg(e.lane_id) filter (where e.has_place),
        array_agg(e.kind) filter (where e.has_place),
        array_agg(e.concurrency_key) filter (where e.has_place),
        array_agg(e) filter (where e.is_awaited or e.batch_id is not null)
    into
        follow_endings.gone, follow_endings.gone_attempts, _queues, _lanes, _kinds, _keys,
        _awaited
    from unnest(follow_endings.endings) as e;
    if follow_endings.gone is not null then
        perform jobq_private.forget_traces(
            follow_endings.gone, 1 < any(follow_endings.gone_attempts)
        );
    end if;
    if _queues is not null then
        perform jobq_private.call_full_lanes(_queues, _lanes, _kinds, _keys);
    end if;
    if _awaited is not null then
        perform jobq_private.leave_looks(_awaited);
    end if;
end
$$;

revoke all on function jobq_private.follow_endings from public;

comment on function jobq_private.follow_endings is
'Does what the ends of jobs bring about.';
