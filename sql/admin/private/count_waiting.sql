-- Purpose: count the waiting jobs of queues that waiting_counts() reads only in part.
-- Invariant: one scan of all live jobs, using at most a twentieth of the time.
create or replace function jobq_private.count_waiting()
returns void language plpgsql as $$
declare
    _started constant timestamptz := clock_timestamp();
begin
    if exists (
        select from jobq_private.waiting_count as c
        where c.counted_at + 20 * c.took > _started
    ) then
        return;
    end if;
    delete from jobq_private.waiting_count;
    insert into jobq_private.waiting_count (queue, queued, scheduled, retrying, counted_at, took)
    select
        j.queue,
        count(*) filter (where j.state = 'queued' and j.run_at <= _started),
        count(*) filter (where j.state = 'queued' and j.run_at > _started),
        count(*) filter (where j.state = 'retrying'),
        _started, '0'
    from jobq_private.job as j
    where j.state in ('queued', 'retrying')
    group by j.queue
    having count(*) > 100;
    update jobq_private.waiting_count as c set took = clock_timestamp() - _started;
end
$$;
