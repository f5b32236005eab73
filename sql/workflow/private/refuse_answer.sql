-- Purpose: raise the error that explains why a question cannot be answered.
-- Invariant: reads only. A question is closed by an answer, which is kept as long as its
-- job, or when its time is over; never raises for an open one. Raises: JQ001, JQ002.
create or replace function jobq_private.refuse_answer(job_id uuid, name text)
returns void language plpgsql stable as $$
declare
    _event constant text := 'answer:' || refuse_answer.name;
    _answer constant jsonb := (
        select e.payload
        from jobq_private.event as e
        where e.event = _event and e.job_id = refuse_answer.job_id
    );
begin
    if _answer is not null then
        perform jobq_private.raise_error('QUESTION_CLOSED', format(
            '%s by %s', case when (_answer ->> 'is_approved')::boolean then 'approved'
            else 'rejected' end, _answer ->> 'by'
        ));
    elsif exists (
        select from jobq_private.waiter as w
        where w.job_id = refuse_answer.job_id and w.event = _event
    ) or exists (
        select from jobq_private.step as s
        where s.job_id = refuse_answer.job_id and s.name = 'event:' || _event
    ) then
        perform jobq_private.raise_error('QUESTION_CLOSED', 'nobody answered in time');
    end if;
    perform jobq_private.raise_error('QUESTION_NOT_FOUND', format(
        'job_id %s, name %s', refuse_answer.job_id, refuse_answer.name
    ));
end
$$;
