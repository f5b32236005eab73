-- Purpose: hold the lane of a dead job where its order asks for that: until the job is redriven or
-- the key released.
-- Invariant: in the transaction in which it died. Raises: nothing.
create or replace function jobq_private.hold_after_dead(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.lane_rule(job.queue, job.concurrency_key) as r
        where r.is_ordered and r.holds_on_dead
        union all
        select from jobq_private.key_rule(job.kind) as r
        where r.holds_on_dead and job.concurrency_key is not null
    ) then
        perform jobq_private.store_hold(
            job.lane_id, job.queue, null, 'infinity', format('job %s is dead', job.job_id),
            job.concurrency_key
        );
    end if;
end
$$;

revoke all on function jobq_private.hold_after_dead from public;

comment on function jobq_private.hold_after_dead is
'Holds the lane of a dead job where its order asks for that.';
