-- Purpose: stop deliveries to an endpoint; what runs goes on, and enqueueing too.
-- Invariant: no claim that begins after the commit delivers to it, but for test_endpoint().
-- Jobs that become due are put aside, each once, so they are in nobody's way; until
-- resume_endpoint() their run_at is the 30th of December 9999.
-- Raises: 22004, 22023, JQ007.
-- Argument endpoint: its name.
-- Argument reason: reason for explain() and the audit log, at most 512 characters.
-- Example: select jobq.pause_endpoint('send-welcome', 'the provider is down');
create or replace function jobq.pause_endpoint(endpoint text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_endpoint.endpoint is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'endpoint');
    elsif length(pause_endpoint.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;
    update jobq_private.endpoint as e
    set
        paused_at = coalesce(e.paused_at, now()),
        pause_reason = coalesce(pause_endpoint.reason, e.pause_reason)
    where e.endpoint = pause_endpoint.endpoint;
    if not found then
        perform jobq_private.raise_error(
            'ENDPOINT_NOT_FOUND', format('endpoint %s', pause_endpoint.endpoint)
        );
    end if;
    perform jobq_private.record_audit(
        'pause_endpoint', pause_endpoint.endpoint, pause_endpoint.reason
    );
end
$$;

grant execute on function jobq.pause_endpoint to jobq_operator;

comment on function jobq.pause_endpoint is
'Pauses deliveries to an endpoint. Running ones continue; other jobs wait.';
