-- Purpose: Creates a batch, with the jobs to run when it has succeeded, has ended, or
-- has its first dead member; returns its id.
-- Invariant: the batch ends when it is sealed and no member is live. These jobs are
-- blocked until then, and have the batch as batch_id in their metadata. They must have
-- no keys, because they must be new; a dedup key that their kind declares is ignored.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010. Never: DEDUP_CONFLICT.
-- Argument on_success: a job as for enqueue_many() except keys, expires_at, after and
-- after_failure, to run when all members have succeeded; cancelled when one has not.
-- Argument on_end: a job to run when all members have ended, with any outcome.
-- Argument on_first_death: a job to run as soon as a member is dead; cancelled if none dies.
-- Returns: the batch, for enqueue(batch_id => …).
-- Example: select jobq.open_batch(on_success => '{"kind": "report"}', on_first_death => '{"kind": "alert"}');
create or replace function jobq.open_batch(
    on_success jsonb default null, on_end jsonb default null, on_first_death jsonb default null
)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _batch_id constant uuid := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _given constant jsonb[] := array[
        open_batch.on_success, open_batch.on_end, open_batch.on_first_death
    ];
    _jobs jobq_private.new_job[];
    _ids uuid[];
begin
    _jobs := jobq_private.read_records(
        null::jobq_private.new_job, 'jobs',
        (select coalesce(jsonb_agg(g order by n), '[]') from unnest(_given) with ordinality as u (g, n) where g is not null),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,batch_id,cost}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].callback_of := _batch_id;
        _jobs[_n].dedup := 'enqueue';
        _jobs[_n].metadata := coalesce(_jobs[_n].metadata, '{}')
            || jsonb_build_object('batch_id', _batch_id);
    end loop;
    _ids := (jobq_private.store_jobs(_jobs)).ids;
    insert into jobq_private.batch (batch_id, on_success, on_end, on_first_death, queue)
    select
        _batch_id,
        _ids[case when _given[1] is not null then 1 end],
        _ids[case when _given[2] is not null then num_nonnulls(_given[1], _given[2]) end],
        _ids[case when _given[3] is not null then cardinality(_ids) end],
        coalesce(
            (select j.queue from jobq_private.job as j where j.job_id = _ids[1]), 'default'
        );
    return _batch_id;
end
$$;
grant execute on function jobq.open_batch to jobq_producer;
