-- Purpose: Returns the state of a batch: its members by state, and whether it is sealed
-- and has ended.
-- Invariant: counts rows; members deleted after their retention do not count.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Column opened_at: when it was made
-- Column sealed_at: when it was sealed, by seal_batch() or cancel_batch(); null before
-- Column ended_at: when the last member ended and its jobs were released; null before
-- Column members: how many jobs belong to it
-- Column blocked: number of blocked jobs
-- Column queued: how many wait to run
-- Column running: how many run
-- Column retrying: number of jobs that wait for a retry
-- Column succeeded: how many have succeeded
-- Column dead: how many are dead
-- Column cancelled: how many were cancelled
-- Column on_success: the job that runs when all members have succeeded; null without one
-- Column on_end: the job that runs when all members have ended; null without one
-- Column on_first_death: the job that runs when the first member is dead; null without one
-- Example: select members, succeeded, ended_at from jobq_internal.batch_status(:'batch');
create or replace function jobq_internal.batch_status(
    batch_id uuid, out opened_at timestamptz, out sealed_at timestamptz, out ended_at timestamptz,
    out members bigint, out blocked bigint, out queued bigint, out running bigint,
    out retrying bigint, out succeeded bigint, out dead bigint, out cancelled bigint,
    out on_success uuid, out on_end uuid, out on_first_death uuid
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(batch_status.batch_id);
begin
    opened_at := _batch.opened_at;
    sealed_at := _batch.sealed_at;
    ended_at := _batch.ended_at;
    on_success := _batch.on_success;
    on_end := _batch.on_end;
    on_first_death := _batch.on_first_death;
    select
        count(*), count(*) filter (where m.state = 'blocked'),
        count(*) filter (where m.state = 'queued'),
        count(*) filter (where m.state = 'running'),
        count(*) filter (where m.state = 'retrying'),
        count(*) filter (where m.state = 'succeeded'),
        count(*) filter (where m.state = 'dead'),
        count(*) filter (where m.state = 'cancelled')
    into members, blocked, queued, running, retrying, succeeded, dead, cancelled
    from (
        select j.state from jobq_private.job as j where j.batch_id = _batch.batch_id
        union all
        select a.state from jobq_private.job_archive as a where a.batch_id = _batch.batch_id
    ) as m;
end
$$;
grant execute on function jobq_internal.batch_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
