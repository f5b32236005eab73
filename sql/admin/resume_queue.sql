-- Purpose: Resumes claims from a queue.
-- Invariant: resuming a queue that is not paused changes nothing. Raises: 22004, 42501, JQ007.
-- Argument queue: the queue; * ends the pause of all queues, but not those of single queues or
-- kinds.
-- Example: select jobq.resume_queue('mail');
create or replace function jobq.resume_queue(queue text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('queue', num_nulls(resume_queue.queue));
    if resume_queue.queue = '*' then
        perform jobq_private.end_pause('*', 'resume_queue');
        return;
    end if;
    update jobq_private.queue as q
    set paused_at = null, pause_reason = null, updated_at = now()
    where q.queue = resume_queue.queue;
    perform jobq_private.check_problem('QUEUE_NOT_FOUND', case
        when not found then 'queue ' || resume_queue.queue
    end);
    perform jobq_private.wake(array[resume_queue.queue]);
end
$$;
grant execute on function jobq.resume_queue to jobq_operator;
