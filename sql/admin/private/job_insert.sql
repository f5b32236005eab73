-- Purpose: enqueue a job that is inserted into the view.
-- Invariant: runs with the caller's rights, so it requires EXECUTE on enqueue().
-- Columns that the database sets (state, attempt, lease, id and others) are refused.
-- Raises: 22004, 22023, JQ002, JQ004, JQ005, JQ006, JQ010.
-- Never: JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND.
create or replace function jobq_private.enqueue_from_view()
returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    -- What is not an argument of enqueue().
    _other constant jsonb := jsonb_strip_nulls(to_jsonb(new)) - array[
        'kind', 'payload', 'queue', 'run_at', 'priority', 'max_attempts', 'timeout',
        'idempotency_key', 'dedup_key', 'metadata', 'concurrency_key', 'expires_at', 'cost'
    ];
begin
    if _other not in ('{}', '{"state": "queued"}') then
        raise exception using
            errcode = 'JQ002',
            message = 'a new job is queued, and the database sets its id',
            detail = format('given: %s', _other),
            hint = 'insert kind, payload and options only',
            constraint = 'ILLEGAL_STATE';
    end if;
    new.job_id := jobq.enqueue(
        new.kind, new.payload, new.queue, new.run_at, new.priority, new.max_attempts,
        new.timeout, new.idempotency_key, new.dedup_key, null, new.metadata,
        new.concurrency_key, new.expires_at, cost => new.cost
    );
    new := jobq.get_job(new.job_id);
    return new;
end
$$;

create or replace trigger job_insert
instead of insert on jobq.job
for each row execute function jobq_private.enqueue_from_view();
