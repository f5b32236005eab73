-- Purpose: Enqueues a job like enqueue(), and returns it as a JSON document with
-- whether it was created.
-- Invariant: as enqueue(): a repeated key returns the existing job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Argument expires_at: no attempt starts after this time, and the job is then dead with
-- EXPIRED; must be after run_at; null means never.
-- Argument is_endpoint: whether kind must be an endpoint.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND.
-- Column item: the job as show_job() returns it.
-- Example: select * from jobq_http.submit_job('send_email', '{"to": "ada@example.org"}');
create or replace function jobq_http.submit_job(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    run_at timestamptz default null,
    priority integer default null,
    max_attempts integer default null,
    timeout interval default null,
    idempotency_key text default null,
    dedup_key text default null,
    dedup text default null,
    metadata jsonb default null,
    is_endpoint boolean default false,
    concurrency_key text default null,
    expires_at timestamptz default null,
    after uuid[] default null,
    after_failure text default null,
    batch_id uuid default null,
    cost numeric default null,
    out created boolean,
    out item json
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    _job constant jobq_private.new_job := row(
        1, submit_job.kind, submit_job.payload, submit_job.queue, submit_job.run_at,
        submit_job.priority, submit_job.max_attempts, submit_job.timeout,
        submit_job.idempotency_key, submit_job.dedup_key, submit_job.dedup,
        submit_job.metadata, null, null, submit_job.concurrency_key,
        submit_job.expires_at, submit_job.after, submit_job.after_failure,
        submit_job.batch_id, null, null,
        null, null, null, null, null, null, null, null, null, submit_job.cost
    );
    _job_id uuid;
begin
    if is_endpoint then
        perform jobq_private.check_endpoints(array[submit_job.kind]);
    end if;
    select s.created[1], s.ids[1] into created, _job_id
    from jobq_private.store_jobs(array[_job]) as s;
    item := jobq_private.job_document(
        jobq.get_job(_job_id), case when is_endpoint then 'endpoint' else 'kind' end
    );
end
$$;

grant execute on function jobq_http.submit_job to jobq_producer;
