-- Purpose: Enqueues a job like enqueue(), and returns it as a JSON document with whether
-- it was created.
-- Invariant: as enqueue(): a repeated key returns the existing job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ007, JQ010.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND.
-- Argument given: the job as a JSON object.
-- Members given: enqueue
-- Column item: the job as show_job() returns it.
-- Example: select * from jobq_http.submit_job('{"kind": "send_email", "payload": {"to": "ada@example.org"}}');
create or replace function jobq_http.submit_job(
    given jsonb, is_endpoint boolean default false, out created boolean, out item json
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    _job_id uuid;
begin
    if is_endpoint then
        perform jobq_private.check_endpoints(array[given ->> 'kind']);
    end if;
    select e.job_id, e.created into _job_id, created
    from jobq.enqueue_many(jsonb_build_array(given)) as e;
    item := jobq_private.job_document(
        jobq.get_job(_job_id), case when is_endpoint then 'endpoint' else 'kind' end
    );
end
$$;
grant execute on function jobq_http.submit_job to jobq_producer;
