-- Purpose: hook, called when a redrive of jobs has ended, or when jobs were moved to another time.
create or replace function jobq_private.on_move(job_ids uuid[])
returns void language plpgsql as $$
begin
end
$$;
