-- Purpose: Sends a signal to a job that waits for it now or later; returns true for the
-- first one of this name.
-- Invariant: an event for this job only, under the name that it waits for; the first
-- one is kept. Part of the caller's transaction. Has no effect on a finished job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name that the job waits for as an event, 1 to 256 characters
-- Argument payload: the payload: any JSON up to max_payload_bytes
-- Returns: true for the first signal of the name
-- Example: select jobq.signal(:'waiting', 'approval', '{"by": "ada"}');
create or replace function jobq.signal(job_id uuid, name text, payload jsonb default 'null')
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(signal.job_id);
begin
    perform jobq_private.check_event(signal.name, signal.payload);
    perform jobq_private.check_argument(case
        when signal.name ~ '^(answer|message|job_ended):'
        then 'name must not begin with ''answer:'', ''message:'' or ''job_ended:'''
    end);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it cannot receive signals', signal.job_id, _job.state)
    end);
    return jobq_private.store_event(signal.name, signal.job_id, signal.payload);
end
$$;
grant execute on function jobq.signal to jobq_producer, jobq_worker, jobq_operator;
