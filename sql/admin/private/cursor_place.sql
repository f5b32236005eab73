-- Purpose: parse a cursor of listen_events().
-- Invariant: refuses a cursor that event_cursor() has not written, and one more than a
-- minute ahead of the clock; the minute allows for the clock of a promoted standby.
-- Raises: 22023.
create or replace function jobq_private.cursor_place(
    cursor text, out at timestamptz, out job_id uuid
)
language plpgsql
stable
parallel safe
as $$
begin
    if cursor_place.cursor !~ '^[0-9]{1,16}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be a cursor of listen_events()'
        );
    end if;
    at := timestamptz '1970-01-01 UTC'
        + interval '1 us' * split_part(cursor_place.cursor, '_', 1)::bigint;
    job_id := split_part(cursor_place.cursor, '_', 2)::uuid;
    if at > clock_timestamp() + interval '1 min' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after is in the future: it may come from another server'
        );
    end if;
end
$$;
