-- Purpose: the HTTP API's name for the state of a job.
create or replace function jobq_private.execution_status(state text, run_at timestamptz)
returns text language plpgsql stable as $$
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
