-- Purpose: a definition of a schedule with these members replaced; null restores the default.
-- Invariant: accepts only what create_schedule() has as arguments, and no name if it has one
-- already. Raises: 22004, 22023.
create or replace function jobq_private.read_schedule(
    base jobq_private.schedule, name text, members jsonb
)
returns jobq_private.schedule language plpgsql stable as $$
declare
    _known constant text[] := array[
        'name', 'kind', 'cron', 'every', 'time_zone', 'payload', 'queue', 'from_completion', 'gap',
        'fold', 'missed', 'catch_up', 'dedup', 'dedup_key', 'jitter', 'starts_at', 'ends_at',
        'priority', 'max_attempts', 'timeout', 'metadata', 'concurrency_key', 'graph'
    ];
    _free constant text[] := array_remove(_known, case when base.name is not null then 'name' end);
begin
    perform jobq_private.check_given(read_schedule.name, num_nulls(members));
    perform jobq_private.check_argument(case
        when jsonb_typeof(members) <> 'object' or members - _free <> '{}'
        then format('%s must be an object with members among %s', read_schedule.name, _free)
    end);
    return jsonb_populate_record(base, members);
end
$$;
