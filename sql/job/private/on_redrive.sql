-- Purpose: hook, called when jobs are about to be redriven. Returns those that must wait for
-- other jobs again.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[] language sql as $$
    select '{}'::uuid[]
$$;
