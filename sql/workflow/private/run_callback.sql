-- Purpose: queue or cancel a job that waits for the end of a batch, unless it has changed before.
-- Invariant: reason is the reason for a cancellation. Returns false if another
-- transaction holds its row.
create or replace function jobq_private.run_callback(
    job_id uuid, state text, reason text default null
)
returns boolean language plpgsql as $$
begin
    update jobq_private.job as j
    set
        state = run_callback.state,
        run_at = greatest(j.run_at, clock_timestamp()),
        cancel_reason = case when run_callback.state = 'cancelled' then run_callback.reason end
    where j.job_id = (
        select c.job_id
        from jobq_private.job as c
        where c.job_id = run_callback.job_id and c.state = 'blocked'
        for update skip locked
    );
    if not found then
        return not exists (
            select from jobq_private.job as c
            where c.job_id = run_callback.job_id and c.state = 'blocked'
        );
    elsif run_callback.state = 'queued' then
        perform jobq_private.announce_jobs(array[run_callback.job_id]);
    end if;
    return true;
end
$$;
