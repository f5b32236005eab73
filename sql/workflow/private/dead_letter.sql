-- Purpose: enqueue the dead letter that the kind of a dead job asks for.
-- Invariant: a letter that cannot be stored does not keep the job from ending; the job's log says
-- why. The death of a letter leaves no other. PostgreSQL parses the condition of the trigger for
-- every statement, so it is short. Never: INVALID_ARGUMENT, NULL_ARGUMENT, JOB_NOT_FOUND,
-- BATCH_NOT_FOUND, BATCH_ENDED, QUEUE_FULL, DEDUP_CONFLICT, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, ILLEGAL_STATE.
create or replace function jobq_private.send_dead_letter()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _letter jobq_private.new_job;
    _detail text;
begin
    select k.dead_letter_kind into _letter.kind
    from jobq_private.kind as k
    where k.kind = new.kind and not new.metadata ? 'dead_letter_of';
    if _letter.kind is null then
        return null;
    end if;
    _letter.ordinal := 1;
    _letter.metadata := jsonb_build_object('dead_letter_of', new.job_id);
    _letter.payload := jsonb_build_object(
        'job_id', new.job_id, 'kind', new.kind, 'queue', new.queue,
        'payload', new.payload, 'metadata', new.metadata,
        'error_code', new.last_error_code, 'error', new.last_error,
        'attempts', new.attempt - new.uncounted
    );
    begin
        perform jobq_private.store_jobs(array[_letter], is_checked => true);
    exception
        when transaction_rollback then
            raise;
        when others then
            get stacked diagnostics _detail = pg_exception_detail;
            insert into jobq_private.job_log (job_id, attempt, level, message)
            values (new.job_id, new.attempt, 'ERROR', left(format(
                'no dead letter of kind %s: %s', _letter.kind,
                concat_ws(': ', sqlerrm, nullif(_detail, ''))
            ), 8192));
    end;
    return null;
end
$$;

create or replace trigger dead_letter
after insert on jobq_private.job_archive
for each row when (new.state = 'dead')
execute function jobq_private.send_dead_letter();
