-- Purpose: Enqueues a job of each kind that has subscribed to an event, and returns their ids.
-- Invariant: all or none. The jobs have the event's name as event in their metadata. Nobody who
-- subscribes later gets a job; emit() is for jobs that wait. Raises: 22004, 22023, JQ004, JQ005,
-- JQ006, JQ010. Never: JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
-- Argument event: the name of the event.
-- Argument idempotency_key: publishing again with the same key creates no second job of a kind;
-- null means no key.
-- Returns: a row for each subscriber, by kind; none if there is none.
-- Column job_id: the id of the new job, or of the existing job with the same key.
-- Example: select * from jobq.publish('order.paid', '{"order_id": 7}');
create or replace function jobq.publish(
    event text, payload jsonb default '{}', metadata jsonb default null,
    idempotency_key text default null
)
returns table (kind text, job_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _jobs jsonb;
begin
    perform jobq_private.check_event(publish.event, publish.payload);
    perform jobq_private.check_argument(case when jsonb_typeof(publish.metadata) <> 'object'
        then 'metadata must be a JSON object' end);
    _jobs := jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'kind', s.kind, 'queue', s.queue, 'idempotency_key', publish.idempotency_key
    )) || jsonb_build_object(
        'payload', publish.payload,
        'metadata', coalesce(publish.metadata, '{}') || jsonb_build_object('event', publish.event)
    ) order by s.kind)
    from jobq_private.subscription as s
    where s.event = publish.event;
    return query
    select _jobs -> (e.ordinal - 1) ->> 'kind', e.job_id
    from jobq.enqueue_many(coalesce(_jobs, '[]')) as e
    order by e.ordinal;
end
$$;
grant execute on function jobq.publish to jobq_producer;
