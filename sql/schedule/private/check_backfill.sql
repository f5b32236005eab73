-- Purpose: refuse a backfill that cannot be meant.
-- Raises: 22004, 22023, JQ002.
create or replace function jobq_private.check_backfill(
    schedule jobq_private.schedule, since timestamptz, until timestamptz, max_slots integer,
    dry_run boolean, reason text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem constant text := case
        when not since < until
        then 'since must lie before until'
        when since < '1900-01-01 UTC' or until > clock_timestamp()
        then 'a span lies between 1900 and now; later slots fire by themselves'
        when max_slots not between 1 and 10000
        then 'max_slots must be from 1 to 10000'
        when length(reason) > 512
        then 'reason must have at most 512 characters'
        when schedule.from_completion
        then 'a schedule that counts from completion has no slots in the past'
    end;
begin
    if num_nulls(since, until, max_slots, dry_run) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'since, until, max_slots and dry_run');
    elsif _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    elsif schedule.status = 'retired' then
        perform jobq_private.raise_error('SCHEDULE_RETIRED', format(
            'schedule %s, version %s', schedule.name, schedule.version
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_backfill from public;

comment on function jobq_private.check_backfill is
'Refuses a backfill that cannot be meant.';
