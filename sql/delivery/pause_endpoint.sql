-- Purpose: Pauses deliveries to an endpoint. Running ones continue; other jobs wait.
-- Invariant: no claim after the commit delivers to it, except for test_endpoint(). A job that
-- becomes due is postponed once, so it does not slow down claims; its run_at is 30 December 9999
-- until resume_endpoint(). While grants by queue are enforced, only for a login with work on all
-- queues. Raises: 22004, 22023, 42501, JQ007.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('endpoint', num_nulls(pause_endpoint.endpoint));
    perform jobq_private.check_argument(case
        when length(pause_endpoint.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.check_endpoints(array[pause_endpoint.endpoint]);
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = coalesce(pause_endpoint.reason, e.pause_reason)
    where e.endpoint = pause_endpoint.endpoint;
    perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
        when not found then 'endpoint ' || pause_endpoint.endpoint
    end);
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;
grant execute on function jobq.pause_endpoint to jobq_operator;
