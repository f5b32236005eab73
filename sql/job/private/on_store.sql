-- Purpose: hook, called when jobs are stored. Returns the ids of those that were stored. The core
-- refuses jobs that use features. Raises: 22023, JQ010.
create or replace function jobq_private.on_store(jobs jobq_private.new_job[])
returns uuid[] language plpgsql as $$
begin
    perform jobq_private.check_argument((
        select 'after, batch_id and concurrency_key require the features of jobq'
        from unnest(on_store.jobs) as j
        where num_nonnulls(j.after, j.batch_id, j.callback_of, j.concurrency_key) > 0
        limit 1
    ));
    return jobq_private.insert_jobs(on_store.jobs);
end
$$;
