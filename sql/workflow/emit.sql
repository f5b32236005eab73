-- Purpose: Emits an event for all jobs that wait for it now or later; returns true for
-- the first emit.
-- Invariant: part of the caller's transaction. The first emit of an event is kept: returns true
-- for it, false for later ones. An event is kept as long as finished jobs, and longer while a job
-- waits for it. While grants by queue are enforced, requires grants for all queues, because jobs
-- of any queue may wait. Raises: 22004, 22023, 42501, JQ005, JQ006.
-- Argument payload: the payload for the waiting jobs: any JSON up to max_payload_bytes
-- Returns: true for the first emit of the event
-- Example: select jobq.emit('payment:42', '{"euro": 5}');
create or replace function jobq.emit(event text, payload jsonb default 'null')
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_event(emit.event, emit.payload);
    perform jobq_private.check_argument(case
        when emit.event ~ '^(answer|message|job_ended):'
        then 'event must not begin with ''answer:'', ''message:'' or ''job_ended:'''
    end);
    if row_security_active('jobq_private.event') and not exists (
        select from jobq_private.held_queue as h where h.any_of && array['*']
    ) then
        perform jobq_private.raise_error(
            'ALL_QUEUES_NEEDED', format('event %s', left(emit.event, 64))
        );
    end if;
    return jobq_private.store_event(
        emit.event, '00000000-0000-0000-0000-000000000000', emit.payload
    );
end
$$;
grant execute on function jobq.emit to jobq_producer, jobq_worker, jobq_operator;
