-- Purpose: the name that the HTTP API has for where a job is.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.execution_status(state text, run_at timestamptz)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case state
        when 'blocked' then 'PENDING'
        when 'queued' then case when run_at > clock_timestamp() then 'PENDING' else 'QUEUED' end
        when 'running' then 'RUNNING'
        when 'retrying' then 'RETRYING'
        when 'succeeded' then 'SUCCESS'
        when 'dead' then 'FAILED'
        when 'cancelled' then 'CANCELLED'
    end;
end
$$;

revoke all on function jobq_private.execution_status from public;

comment on function jobq_private.execution_status is
'The HTTP API''s name for a state: PENDING, QUEUED, RUNNING, RETRYING, SUCCESS, FAILED or CANCELLED.';
