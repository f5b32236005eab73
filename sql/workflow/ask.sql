-- Purpose: Asks a person a question and waits for the answer: returns it, or that the
-- job was returned to its queue until somebody answers.
-- Invariant: as wait_for(), for an answer() to the question. Only answer() can answer it: events
-- and signals cannot have the name of an answer. While the job waits, a later call replaces
-- question and form. Raises: 22004, 22023, JQ001, JQ003, JQ006.
-- Argument name: the name of the question, unique within the job, 1 to 249 characters
-- Argument question: what the person reads, 1 to 4096 characters
-- Argument form: a JSON Schema of the data that an approval must have; null means any
-- Argument timeout: maximum waiting time from the first call; up to 36500 days, the default
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: the answer, a JSON object: is_approved, data, reason, by
-- Example: select * from jobq.ask(:'running', 1, 'refund', 'Refund 5 euro?', timeout => '3 days');
create or replace function jobq.ask(
    job_id uuid, attempt integer, name text, question text, form jsonb default null,
    timeout interval default null, out outcome text, out payload jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _event constant text := 'answer:' || ask.name;
    _worker constant text := (
        select j.worker from jobq_private.job as j where j.job_id = ask.job_id
    );
begin
    perform jobq_private.check_given('name and question', num_nulls(ask.name, ask.question));
    perform jobq_private.check_argument(case
        when length(ask.name) not between 1 and 249 then 'name must have 1 to 249 characters'
        when length(ask.question) not between 1 and 4096
        then 'question must have 1 to 4096 characters'
    end);
    perform jobq_private.check_problem('SCHEMA_INVALID', coalesce(
        jobq_private.schema_problem(ask.form, 'form'),
        case when length(ask.form::text) > 65536
            then 'form must have at most 65536 characters' end
    ));
    select w.outcome, w.payload into outcome, payload
    from jobq.wait_for(ask.job_id, ask.attempt, _event, ask.timeout) as w;
    if outcome = 'waiting' then
        update jobq_private.waiter as w
        set question = ask.question, form = ask.form, asked_by = coalesce(_worker, session_user)
        where w.job_id = ask.job_id and w.event = _event;
    end if;
end
$$;
grant execute on function jobq.ask to jobq_worker;
