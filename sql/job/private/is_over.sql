-- Purpose: whether the transaction that left its mark on a row has ended, or is the caller's own.
-- Invariant: knows savepoints too, which a snapshot does not list. Of one that has begun
-- since the snapshot it says no. Raises: nothing.
create or replace function jobq_private.is_over(mark xid)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _next constant xid8 := pg_snapshot_xmax(pg_current_snapshot());
    _since constant integer := age(mark) - age(_next::xid);
begin
    return case
        when mark = pg_current_xact_id_if_assigned()::xid then true
        when _since <= 0 then false
        else pg_xact_status((_next::text::bigint - _since)::text::xid8) <> 'in progress'
    end;
end
$$;

revoke all on function jobq_private.is_over from public;

comment on function jobq_private.is_over is
'Whether the transaction that left its mark on a row has ended.';
