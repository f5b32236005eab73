-- Purpose: a job of a schedule; with slot_at the one of that slot, which is stored once.
create or replace function jobq_private.schedule_job(
    schedule jobq_private.schedule, ordinal integer, run_at timestamptz, slot_at timestamptz,
    dedup text
)
returns jobq_private.new_job language plpgsql stable as $$
declare
    _job jobq_private.new_job;
begin
    _job.ordinal := schedule_job.ordinal;
    _job.kind := schedule.kind;
    _job.payload := schedule.payload;
    _job.queue := schedule.queue;
    _job.run_at := schedule_job.run_at;
    _job.priority := schedule.priority;
    _job.max_attempts := schedule.max_attempts;
    _job.timeout := schedule.timeout;
    _job.dedup_key := case when schedule_job.dedup <> 'enqueue' then schedule.dedup_key end;
    _job.dedup := schedule_job.dedup;
    _job.metadata := schedule.metadata;
    _job.concurrency_key := schedule.concurrency_key;
    if slot_at is not null then
        _job.schedule_id := schedule.schedule_id;
        _job.slot_at := schedule_job.slot_at;
        _job.idempotency_key := format(
            'job_%s_%s', schedule.schedule_id, floor(extract(epoch from slot_at) * 1000)
        );
    end if;
    return _job;
end
$$;
