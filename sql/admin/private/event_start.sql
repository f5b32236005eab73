-- Purpose: where a page of listen_events() starts.
-- Invariant: refuses a standby, which does not show the primary's locks; a transaction
-- with one snapshot, which does not see what others commit; a cursor that
-- event_cursor() has not written, and one more than a minute ahead of the clock. The
-- minute allows for the clock of a promoted standby. Raises: 22004, 22023.
create or replace function jobq_private.event_start(
    after text, queues text[], kinds text[], since timestamptz, max_events integer,
    out at timestamptz, out job_id uuid
)
language plpgsql stable as $$
begin
    perform jobq_private.check_argument(case
        when array_ndims(queues) > 1 or array_ndims(kinds) > 1
        then 'queues and kinds must be one-dimensional'
        when max_events not between 1 and 1000
        then 'max_events must be from 1 to 1000'
        when cardinality(queues) = 0 or cardinality(kinds) = 0
        then 'queues and kinds must each be null or have at least one name'
        when after is not null and since is not null
        then 'pass after or since, not both'
        when since not between '1970-01-01 UTC' and clock_timestamp()
        then 'since must be from 1970 to now'
        when pg_is_in_recovery()
        then 'events are not available on a standby; connect to the primary'
        when current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
        then 'events require the isolation level read committed'
        when after !~ '^[0-9]{1,16}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then 'after must be a cursor of listen_events()'
    end);
    perform jobq_private.check_given(
        'max_events, or one of queues or kinds',
        num_nulls(max_events) + coalesce(array_position(queues || kinds, null), 0)
    );
    at := coalesce(
        timestamptz '1970-01-01 UTC' + interval '1 us' * split_part(after, '_', 1)::bigint,
        since, clock_timestamp()
    );
    job_id := coalesce(
        split_part(after, '_', 2)::uuid, '00000000-0000-0000-0000-000000000000'::uuid
    );
    perform jobq_private.check_argument(case
        when at > clock_timestamp() + interval '1 min'
        then 'after is in the future: it may come from another server'
    end);
end
$$;
