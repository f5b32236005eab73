-- Purpose: cancel those of these blocked jobs that can never run, since a parent, of parallel
-- arrays, has ended as it has.
-- Invariant: the caller has the rows that are held. Their open edges stay, so that a redrive has
-- them wait again. A statement for each step, whatever their number. Returns how many.
-- Raises: nothing.
create or replace function jobq_private.cancel_children(
    children uuid[], parents uuid[], ends text[], held uuid[]
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _doomed uuid[];
    _attempts integer[];
begin
    if not exists (
        select from unnest(cancel_children.ends) as t (ended_as) where t.ended_as <> 'succeeded'
    ) then
        return 0;
    end if;
    with doomed as materialized (
        select distinct on (t.child) t.child, t.parent, t.ended_as
        from unnest(
            cancel_children.children, cancel_children.parents, cancel_children.ends
        ) as t (child, parent, ended_as)
        join jobq_private.edge as e
            -- Not by edge_open_idx, which has all that a child waits for.
            on e.child = t.child and e.parent = t.parent and coalesce(e.is_open, false)
        where t.child = any(cancel_children.held)
        and jobq_private.follows(t.ended_as, e.after_failure) = 'dooms'
        order by t.child, t.parent
    ),
    told as (
        update jobq_private.job as j
        set
            cancel_reason = format('job_id %s, which it waited for, is %s', d.parent, d.ended_as),
            last_error_code = case d.ended_as
                when 'gone' then 'PARENT_GONE' else 'PARENT_FAILED'
            end,
            last_error = format('job_id %s is %s', d.parent, d.ended_as)
        from doomed as d
        where j.job_id = d.child and j.state = 'blocked'
        returning j.job_id, j.attempt
    )
    select array_agg(t.job_id), array_agg(t.attempt) into _doomed, _attempts
    from told as t;
    if _doomed is null then
        return 0;
    end if;
    perform jobq_private.archive_jobs(_doomed, _attempts, 'cancelled', null, false);
    return cardinality(_doomed);
end
$$;

revoke all on function jobq_private.cancel_children from public;

comment on function jobq_private.cancel_children is
'Cancels jobs that wait for one that is dead or cancelled.';
