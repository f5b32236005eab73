-- Purpose: refuse an invalid event.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_given('event and payload', num_nulls(
        check_event.event, check_event.payload
    ));
    perform jobq_private.check_argument(case
        when length(check_event.event) not between 1 and 256
        then 'event must have 1 to 256 characters'
    end);
    perform jobq_private.check_problem(p.problem[1], 'payload: ' || p.problem[2])
    from jobq_private.setting as g
    cross join lateral jobq_private.value_problem(
        check_event.payload, g.max_payload_bytes, g.max_payload_depth
    ) as p (problem);
end
$$;
