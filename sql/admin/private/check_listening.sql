-- Purpose: refuse invalid calls of listen_events().
-- Invariant: a standby does not show the primary's locks, and a transaction with one
-- snapshot does not see what others commit. Raises: 22004, 22023.
create or replace function jobq_private.check_listening(
    after text, queues text[], kinds text[], since timestamptz, max_events integer
)
returns void
language plpgsql
stable
parallel safe
as $$
declare
    _problem constant text := case
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
    end;
begin
    if array_ndims(queues) > 1 or array_ndims(kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and kinds must be one-dimensional'
        );
    elsif max_events is null
        or array_position(queues, null) is not null
        or array_position(kinds, null) is not null
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_events, or one of queues or kinds');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
end
$$;
