-- Purpose: Answers the question of a job that waits for a person: approves or rejects.
-- Invariant: the first answer counts; a later one is refused. Part of the caller's transaction,
-- with an audit row. While the job's row is locked, neither another answer nor the end of the
-- waiting time is recorded. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name of the question
-- Argument is_approved: true approves, false rejects
-- Argument data: the data of the answer: any JSON up to max_payload_bytes. That of an
-- approval must match the form of the question.
-- Argument answered_by: the person in whose name the caller answers, 1 to 256
-- characters; null means the caller
-- Example: select jobq.answer(:'asking', 'refund', true, reason => 'a regular customer', answered_by => 'ada');
create or replace function jobq.answer(
    job_id uuid, name text, is_approved boolean, data jsonb default 'null',
    reason text default null, answered_by text default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _event constant text := 'answer:' || answer.name;
    _caller constant text := nullif(current_setting('jobq.acting_for', true), '');
    _acting_for constant text := left(concat_ws(' for ', _caller, answer.answered_by), 256);
    _payload constant jsonb := jsonb_build_object(
        'is_approved', answer.is_approved, 'data', answer.data, 'reason', answer.reason,
        'by', coalesce(nullif(_acting_for, ''), session_user)
    );
    _form jsonb;
begin
    perform jobq_private.check_given('name, is_approved and data', num_nulls(
        answer.name, answer.is_approved, answer.data
    ));
    perform jobq_private.check_argument(case
        when length(answer.name) not between 1 and 249 then 'name must have 1 to 249 characters'
        when length(answer.reason) > 512 then 'reason must have at most 512 characters'
        when length(answer.answered_by) not between 1 and 256
        then 'answered_by must have 1 to 256 characters'
    end);
    perform jobq.get_job(answer.job_id);
    perform jobq_private.check_event(_event, _payload);

    perform from jobq_private.job as j where j.job_id = answer.job_id for no key update;
    select q.form into _form
    from jobq.question as q
    where q.job_id = answer.job_id and q.name = answer.name;
    if not found then
        perform jobq_private.refuse_answer(answer.job_id, answer.name);
    elsif answer.is_approved then
        perform jobq_private.check_problem(
            'PAYLOAD_INVALID', format('the data do not match the form of question %s: ', answer.name)
                || jobq_private.schema_violation(_form, answer.data, 'data')
        );
    end if;
    perform jobq_private.store_event(_event, answer.job_id, _payload);
    insert into jobq_private.audit (action, subject, reason, acting_for)
    values (
        case when answer.is_approved then 'approve' else 'reject' end,
        answer.job_id::text, left(concat_ws(': ', answer.name, answer.reason), 512),
        nullif(_acting_for, '')
    );
end
$$;
grant execute on function jobq.answer to jobq_producer, jobq_operator;
