-- Purpose: enqueue the dead letter of a job that its kind asks for.
-- Invariant: a letter that cannot be stored does not keep the job from ending; the job's log says why.
-- Never: INVALID_ARGUMENT, NULL_ARGUMENT, JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, QUEUE_FULL,
-- DEDUP_CONFLICT, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, ILLEGAL_STATE.
create or replace function jobq_private.store_dead_letter(
    job_id uuid, attempt integer, kind text, payload jsonb
)
returns void
language plpgsql
as $$
declare
    _letter jobq_private.new_job;
    _detail text;
begin
    _letter.ordinal := 1;
    _letter.kind := store_dead_letter.kind;
    _letter.payload := store_dead_letter.payload;
    _letter.metadata := jsonb_build_object('dead_letter_of', store_dead_letter.job_id);
    perform jobq_private.store_jobs(array[_letter], is_checked => true);
exception
    when transaction_rollback then
        raise;
    when others then
        get stacked diagnostics _detail = pg_exception_detail;
        insert into jobq_private.job_log (job_id, attempt, level, message)
        values (
            store_dead_letter.job_id, store_dead_letter.attempt, 'ERROR', left(format(
                'no dead letter of kind %s: %s', store_dead_letter.kind,
                concat_ws(': ', sqlerrm, nullif(_detail, ''))
            ), 8192)
        );
end
$$;
