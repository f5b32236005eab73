-- Purpose: reopen_keys() for these jobs, which leave their keys, or change their order
-- there.
create or replace function jobq_private.reopen_keys_of(job_ids uuid[])
returns void
language sql
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select jobq_private.reopen_keys(array_agg(j.queue), array_agg(j.key_id), array_agg(j.kind))
    from jobq_private.job as j
    where j.job_id = any(reopen_keys_of.job_ids) and j.key_id is not null
    having count(*) > 0
$$;
