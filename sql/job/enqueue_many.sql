-- Purpose: add many jobs with one call, given as a JSON array of objects whose members
-- are named as the parameters of enqueue().
-- Invariant: all or none. An unknown member is
-- refused, so that no misspelt option is passed over. Planned once: a plan made for the
-- batch as a constant copies it several times.
-- Raises: 22004, 22023, JQ004, JQ005, JQ006, JQ010.
-- Members jobs: enqueue
-- Column job_id: the id of the job: the new one, or the one that holds the key already.
-- Example: select * from jobq.enqueue_many('[{"kind": "send_email", "payload": {"to": "ada@example.org"}},
--     {"kind": "send_email", "payload": {"to": "bob@example.org"}, "priority": 5}]');
create or replace function jobq.enqueue_many(jobs jsonb)
returns table (ordinal integer, job_id uuid, created boolean)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    _known constant text[] := array[
        'kind', 'payload', 'queue', 'run_at', 'priority', 'max_attempts', 'timeout',
        'idempotency_key', 'dedup_key', 'dedup', 'metadata',
        'concurrency_key', 'expires_at'
    ];
    _problem text;
    _jobs jobq_private.new_job[];
begin
    if enqueue_many.jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'jobs');
    elsif jsonb_typeof(enqueue_many.jobs) <> 'array' then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'jobs must be a JSON array');
    end if;

    select format('job %s: must be an object with members among %s', e.n, _known)
    into _problem
    from jsonb_array_elements(enqueue_many.jobs) with ordinality as e (job, n)
    where jsonb_typeof(e.job) <> 'object' or e.job - _known <> '{}'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;

    select array_agg(jsonb_populate_record(
        row(
            e.n, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null
        )::jobq_private.new_job, e.job
    ) order by e.n) into _jobs
    from jsonb_array_elements(enqueue_many.jobs) with ordinality as e (job, n);
    return query
    select i.ordinal, i.job_id, i.created
    from jobq_private.insert_jobs(coalesce(_jobs, '{}')) as i
    order by i.ordinal;
end
$$;

revoke all on function jobq.enqueue_many from public;
grant execute on function jobq.enqueue_many to jobq_producer;

comment on function jobq.enqueue_many is
'Adds many jobs, all or none, and tells for each one its id and whether it was created.';
