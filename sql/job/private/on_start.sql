-- Purpose: hook, called before a job starts that no claim has found (claimed by its id, or
-- started by raw SQL), and before a delivery. Returns the job, with its slot and claimed_at where
-- they are decided; null if it must not start.
create or replace function jobq_private.on_start(job jobq_private.job, is_claim boolean)
returns jobq_private.job language plpgsql stable as $$
begin
    return job;
end
$$;
