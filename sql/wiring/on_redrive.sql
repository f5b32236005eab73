-- Purpose: the hook on_redrive() of a full installation: jobs wait again for what they waited for.
create or replace function jobq_private.on_redrive(job_ids uuid[])
returns uuid[]
language sql
as $$
    select jobq_private.wait_again(job_ids)
$$;
