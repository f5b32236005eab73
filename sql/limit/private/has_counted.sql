-- Purpose: whether all that runs has its place where limits count it: after a change of limits by a
-- repeatable snapshot, which may not have seen all that ran, the next claim of any queue gives them.
-- Invariant: one claim does, and nobody waits: false for all others meanwhile, and while another
-- transaction has one of these jobs. Raises: nothing.
create or replace function jobq_private.has_counted()
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _uncounted uuid[];
begin
    if not exists (select from jobq_private.kind_gate as k where k.gate_id is null) then
        return true;
    elsif not pg_try_advisory_xact_lock(_limits, 256) then
        return false;
    end if;
    _uncounted := array(select jobq_private.uncounted(null));
    if cardinality(_uncounted) > cardinality(array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any (_uncounted)
        for update skip locked
    )) then
        return false;
    end if;
    perform jobq_private.number_running(null);
    delete from jobq_private.kind_gate as k where k.gate_id is null;
    return true;
end
$$;

revoke all on function jobq_private.has_counted from public;

comment on function jobq_private.has_counted is
'Says whether all that runs has its place where limits count it.';
