-- Purpose: the hook on_move() of a full installation: jobs go back under their limits, and what
-- depends on them is looked at again.
create or replace function jobq_private.on_move(job_ids uuid[])
returns void language plpgsql as $$
begin
    if job_ids <> '{}' then
        perform jobq_private.open_keys(job_ids, array(
            select distinct j.key_id from jobq_private.job as j where j.job_id = any(job_ids)
        ));
        perform jobq_private.follow_redriven(job_ids);
        perform jobq_private.release_dead_keys(job_ids);
    end if;
end
$$;
