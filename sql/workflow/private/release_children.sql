-- Purpose: queue those of these blocked jobs that wait for nothing any more.
-- Invariant: the caller has their rows; a new snapshot shows the edges that others have
-- closed. They are due as of this moment, so that no claim that began before their parents'
-- ends takes them, or at the time that they were given. Returns how many.
-- Raises: nothing.
create or replace function jobq_private.release_children(held uuid[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _released uuid[];
    _queues text[];
begin
    with released as (
        update jobq_private.job as j
        set state = 'queued', run_at = greatest(j.run_at, clock_timestamp())
        where j.job_id = any(release_children.held)
        and j.state = 'blocked'
        and not exists (
            select from jobq_private.edge as e where e.child = j.job_id and e.is_open
        )
        returning j.job_id, j.queue
    )
    select array_agg(r.job_id), array_agg(distinct r.queue) into _released, _queues
    from released as r;
    if _released is null then
        return 0;
    end if;
    perform jobq_private.call_lanes(_released);
    perform jobq_private.wake(_queues);
    return cardinality(_released);
end
$$;

revoke all on function jobq_private.release_children from public;

comment on function jobq_private.release_children is
'Queues blocked jobs that wait for nothing any more.';
