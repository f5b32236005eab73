-- Purpose: Enqueues one delivery to an endpoint, even if it is paused, and returns the job's id.
-- Invariant: an ordinary job with one attempt and the highest priority; of a paused endpoint only
-- the newest test is delivered. Raises: 22004, 22023, JQ005, JQ006, JQ007, JQ010.
-- Never: DEDUP_CONFLICT, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
-- Returns: the id of the job, whose result is the target's response.
-- Example: select jobq_internal.test_endpoint('send-welcome', '{"user_id": "u1"}');
create or replace function jobq_internal.test_endpoint(endpoint text, payload jsonb default '{}')
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job_id uuid;
begin
    perform jobq_private.check_given('endpoint', num_nulls(test_endpoint.endpoint));
    perform jobq_private.check_endpoints(array[test_endpoint.endpoint]);
    _job_id := jobq.enqueue(
        test_endpoint.endpoint, test_endpoint.payload, priority => 32767,
        max_attempts => 1, metadata => '{"test": true}'
    );
    update jobq_private.endpoint as e
    set test_job_id = _job_id
    where e.endpoint = test_endpoint.endpoint;
    return _job_id;
end
$$;
grant execute on function jobq_internal.test_endpoint to jobq_operator;
