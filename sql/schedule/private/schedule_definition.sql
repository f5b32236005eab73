-- Purpose: what of a schedule its author declares, for comparison.
-- Invariant: reads nothing; the parsed form follows from the expression. Raises:
-- nothing.
create or replace function jobq_private.schedule_definition(
    schedule jobq_private.schedule
)
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select to_jsonb(schedule) - array[
        'schedule_id', 'version', 'previous_version_id', 'replaced_by_id', 'status',
        'parsed', 'next_run_at', 'awaited_job_id', 'last_tick_at', 'paused_at',
        'pause_reason', 'retry_at', 'failure', 'login', 'region', 'created_at',
        'retired_at'
    ]
$$;

revoke all on function jobq_private.schedule_definition from public;

comment on function jobq_private.schedule_definition is
'Returns what of a schedule its author declares.';
