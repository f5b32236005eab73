-- Purpose: Seals a batch and cancels its members, and returns how many were cancelled,
-- were asked to stop, and remain.
-- Invariant: cancels at most max_jobs waiting members per call, oldest first; repeat the call
-- while some remain. Skips rows that another transaction has locked. Raises: 22004, 22023, JQ001.
-- Argument batch_id: the batch
-- Argument max_jobs: maximum number, 1 to 100000.
-- Column cancelled: how many were cancelled
-- Column requested: how many run, and were asked to stop
-- Column remaining: how many are left, neither cancelled nor asked
-- Example: select * from jobq.cancel_batch(:'batch', 'wrong list');
create or replace function jobq.cancel_batch(
    batch_id uuid, reason text default null, max_jobs integer default 10000, out cancelled bigint,
    out requested bigint, out remaining bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held uuid[];
begin
    perform jobq_private.find_batch(cancel_batch.batch_id);
    perform jobq_private.check_count('max_jobs', cancel_batch.max_jobs, 1, 100000);
    perform jobq_private.check_argument(case when length(cancel_batch.reason) > 512
        then 'reason must have at most 512 characters' end);
    perform jobq.seal_batch(cancel_batch.batch_id);
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null
        order by j.job_id
        limit cancel_batch.max_jobs
        for update skip locked
    );
    select
        count(*) filter (where c.outcome = 'cancelled'),
        count(*) filter (where c.outcome = 'cancel_requested')
    into cancelled, requested
    from jobq_private.cancel_jobs(_held, cancel_batch.reason) as c;
    select count(*) into remaining
    from jobq_private.job as j
    where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null;
end
$$;
grant execute on function jobq.cancel_batch to jobq_producer, jobq_operator;
