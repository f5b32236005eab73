-- Purpose: Pauses claims from a queue, or from all (*). Running jobs continue.
-- Invariant: declares the queue if it is not declared. Raises: 22004, 22023, 42501.
-- Argument queue: the queue; * pauses all queues, also new ones.
-- Example: select jobq.pause_queue('mail', 'the provider is down');
create or replace function jobq.pause_queue(queue text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('queue', num_nulls(pause_queue.queue));
    perform jobq_private.check_argument(case
        when length(pause_queue.queue) not between 1 and 128
            or pause_queue.queue <> '*' and right(pause_queue.queue, 1) = '*'
        then 'queue must have 1 to 128 characters, and must not end in *'
        when length(pause_queue.reason) > 512 then 'reason must have at most 512 characters'
    end);
    if pause_queue.queue = '*' then
        perform jobq_private.store_pause('*', 'pause_queue', pause_queue.reason);
        return;
    end if;
    if not exists (select from jobq_private.queue as q where q.queue = pause_queue.queue) then
        raise notice using
            message = 'the queue did not exist; it was created and paused',
            detail = format('queue %s', pause_queue.queue);
    end if;
    insert into jobq_private.queue as q (queue, paused_at, pause_reason)
    values (pause_queue.queue, now(), pause_queue.reason)
    on conflict on constraint queue_pkey do update
    set
        paused_at = coalesce(q.paused_at, now()),
        pause_reason = coalesce(excluded.pause_reason, q.pause_reason),
        updated_at = now();
exception
    when insufficient_privilege then
        perform jobq_private.raise_error(
            case pause_queue.queue when '*' then 'ALL_QUEUES_NEEDED' else 'QUEUE_DENIED' end,
            'queue ' || pause_queue.queue
        );
end
$$;
grant execute on function jobq.pause_queue to jobq_operator;
