-- Purpose: let one job start that the table's trigger asks for: claimed by its id, or started by raw SQL.
-- Invariant: a delivery to a paused endpoint is put aside. What no claim has counted is checked and
-- counted here, under the locks of all limits that it passes. The time of its start is read between:
-- no end of what made room is later, and what it is charged counts from no earlier. Raises: JQ011.
create or replace function jobq_private.start_job(job jobq_private.job, is_uncounted boolean)
returns jobq_private.claim_turn
language plpgsql
as $$
declare
    _turn jobq_private.claim_turn;
begin
    if job.delivery_version is not null
        and jobq_private.park_delivery(job.job_id, job.kind, job.run_at)
    then
        return row('{}', '{}', null, 0, null)::jobq_private.claim_turn;
    elsif is_uncounted then
        select t.slot, t.started_at into _turn.slot, _turn.started_at
        from jobq_private.take_slot(job) as t;
    end if;
    return _turn;
end
$$;
