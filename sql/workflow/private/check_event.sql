-- Purpose: refuse an invalid event.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void
language plpgsql
stable
as $$
declare
    _problem text[];
begin
    if num_nulls(check_event.event, check_event.payload) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'event and payload');
    elsif length(check_event.event) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'event must have 1 to 256 characters'
        );
    end if;
    select jobq_private.value_problem(
        check_event.payload, g.max_payload_bytes, g.max_payload_depth
    ) into _problem
    from jobq_private.setting as g;
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], 'payload: ' || _problem[2]);
    end if;
end
$$;
