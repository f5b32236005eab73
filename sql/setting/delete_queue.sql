-- Purpose: Deletes the declaration of a queue; refused while it has live jobs or schedules.
-- Invariant: refused while it has live jobs, and by a trigger while it has schedules.
-- Raises: 22004, JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if delete_queue.queue is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queue');
    elsif exists (
        select from jobq_private.job as j where j.queue = delete_queue.queue
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of queue %s', delete_queue.queue
        ));
    end if;
    delete from jobq_private.queue as d where d.queue = delete_queue.queue;
    if not found then
        perform jobq_private.raise_error('QUEUE_NOT_FOUND', format(
            'queue %s', delete_queue.queue
        ));
    end if;
    perform jobq_private.record_audit('delete_queue', delete_queue.queue);
end
$$;

grant execute on function jobq.delete_queue to jobq_operator;
