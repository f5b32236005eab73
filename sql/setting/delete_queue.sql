-- Purpose: forget what was declared of a queue.
-- Invariant: refused while live jobs or schedules of the queue exist, in their graphs too.
-- Raises: 22004, JQ007, JQ008.
-- Example: select jobq.delete_queue('unused');
create or replace function jobq.delete_queue(queue text)
returns void
language plpgsql
volatile
parallel unsafe
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
    elsif exists (
        select from jobq_private.schedule as s
        where (
            s.queue = delete_queue.queue or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object('queue', delete_queue.queue)]
            )
        )
        and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of queue %s', delete_queue.queue
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

revoke all on function jobq.delete_queue from public;
grant execute on function jobq.delete_queue to jobq_operator;

comment on function jobq.delete_queue is
'Forgets what was declared of a queue; refused while live jobs or schedules of it exist.';
