-- Purpose: Subscribes a kind to an event: each publish() enqueues a job of it.
-- Invariant: one subscription for each event and kind; the last call decides about its queue.
-- Raises: 22004, 22023, 42501.
-- Argument event: the name of the event.
-- Argument queue: the queue of the jobs; null means the kind's, else default.
-- Example: select jobq.subscribe('order.paid', 'send_receipt');
create or replace function jobq.subscribe(event text, kind text, queue text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _violated text;
begin
    perform jobq_private.check_given('event and kind', num_nulls(
        subscribe.event, subscribe.kind
    ));
    insert into jobq_private.subscription as s (event, kind, queue)
    values (subscribe.event, subscribe.kind, subscribe.queue)
    on conflict on constraint subscription_pkey do update
    set queue = excluded.queue
    where s.queue is distinct from excluded.queue;
    if found then
        perform jobq_private.record_audit('subscribe', subscribe.kind, subscribe.event);
    end if;
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
    when insufficient_privilege then
        perform jobq_private.raise_error('QUEUE_DENIED', format(
            'queue %s, kind %s', coalesce(subscribe.queue, 'of the kind'), subscribe.kind
        ));
end
$$;
grant execute on function jobq.subscribe to jobq_worker, jobq_operator;
