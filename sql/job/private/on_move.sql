-- Purpose: hook, called when jobs have been redriven, or moved to another time.
create or replace function jobq_private.on_move(job_ids uuid[])
returns void language plpgsql as $$
begin
end
$$;
