-- Purpose: whether a more urgent job is due than this one, the last that a claim has found.
-- Invariant: locks nothing. Hot: its callers pin the search path, and that the index is read in
-- its order. Raises: nothing.
create or replace function jobq_private.is_overtaken(
    queue text, last_found tid, now timestamptz, except_kinds text[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
    return exists (
        select
        from jobq_private.job as j
        where j.queue = is_overtaken.queue
        and j.state in ('queued', 'retrying')
        and j.lane_id is null
        and j.priority > (select l.priority from jobq_private.job as l where l.ctid = last_found)
        and j.run_at <= is_overtaken.now
        and (is_overtaken.except_kinds is null or j.kind <> all(is_overtaken.except_kinds))
    );
end
$$;

revoke all on function jobq_private.is_overtaken from public;

comment on function jobq_private.is_overtaken is
'Says whether a more urgent job is due than the last that a claim has found.';
