-- Purpose: refuse an event that cannot be meant.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(check_event.event, check_event.payload) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'event and payload');
    elsif length(check_event.event) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'event must have 1 to 256 characters'
        );
    end if;
    perform jobq_private.check_results(
        '{00000000-0000-0000-0000-000000000000}', '{0}', jsonb_build_array(check_event.payload)
    );
end
$$;

revoke all on function jobq_private.check_event from public;

comment on function jobq_private.check_event is
'Refuses an event that cannot be meant.';
