-- Purpose: hook, called when jobs are stored (jobs), rescheduled or redriven (moved), or are about
-- to be redriven (redriven). Returns the ids of the new jobs that were stored, or of the redriven
-- ones that must wait for other jobs again. The core refuses jobs that use features.
-- Raises: 22023, JQ010.
create or replace function jobq_private.on_store(
    jobs jobq_private.new_job[], moved uuid[] default '{}', redriven uuid[] default '{}'
)
returns uuid[]
language plpgsql
as $$
begin
    if on_store.jobs = '{}' then
        return '{}'::uuid[];
    elsif exists (
        select from unnest(on_store.jobs) as j
        where num_nonnulls(j.after, j.batch_id, j.callback_of, j.concurrency_key) > 0
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after, batch_id and concurrency_key require the features of jobq'
        );
    end if;
    return jobq_private.insert_jobs(on_store.jobs);
end
$$;
