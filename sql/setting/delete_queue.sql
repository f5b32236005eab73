-- Purpose: Deletes the declaration of a queue; refused while it has live jobs or schedules.
-- Invariant: refused while it has live jobs, and by a trigger while it has schedules.
-- Raises: 22004, JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('queue', num_nulls(queue));
    perform jobq_private.check_problem('HAS_DEPENDENTS', case
        when exists (select from jobq_private.job as j where j.queue = delete_queue.queue)
        then format('live jobs of queue %s', queue)
    end);
    delete from jobq_private.queue as d where d.queue = delete_queue.queue;
    perform jobq_private.check_problem(
        'QUEUE_NOT_FOUND', case when not found then format('queue %s', queue) end
    );
    perform jobq_private.record_audit('delete_queue', delete_queue.queue);
end
$$;
grant execute on function jobq.delete_queue to jobq_operator;
