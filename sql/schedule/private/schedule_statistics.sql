-- Purpose: how the executions of a schedule's version went that ended in the last 24
-- hours.
-- Invariant: reads the partitions of two days, by the index on schedules. Cancelled
-- ones are left out: they say nothing of the work. Raises: nothing.
create or replace function jobq_private.schedule_statistics(
    schedule_id uuid, out total bigint, out succeeded bigint, out failed bigint,
    out avg_duration_ms bigint, out p99_duration_ms bigint
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
    select
        count(*), count(*) filter (where a.state = 'succeeded'),
        count(*) filter (where a.state = 'dead'),
        jobq_private.milliseconds(avg(a.finished_at - a.claimed_at)),
        jobq_private.milliseconds(
            percentile_disc(0.99) within group (order by a.finished_at - a.claimed_at)
        )
    into total, succeeded, failed, avg_duration_ms, p99_duration_ms
    from jobq_private.job_archive as a
    where a.schedule_id = schedule_statistics.schedule_id
    and a.finished_at >= now() - interval '24 hours'
    and a.state in ('succeeded', 'dead');
end
$$;

revoke all on function jobq_private.schedule_statistics from public;

comment on function jobq_private.schedule_statistics is
'Tells how the executions of a schedule''s version went that ended in the last 24 hours.';
