-- Purpose: Ends the subscription of a kind to an event, and returns whether there was one.
-- Invariant: repeating it changes nothing. Raises: 22004.
-- Argument event: the name of the event.
-- Returns: whether there was a subscription.
-- Example: select jobq.unsubscribe('order.paid', 'send_receipt');
create or replace function jobq.unsubscribe(event text, kind text)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('event and kind', num_nulls(
        unsubscribe.event, unsubscribe.kind
    ));
    delete from jobq_private.subscription as s
    where s.event = unsubscribe.event and s.kind = unsubscribe.kind;
    if not found then
        return false;
    end if;
    perform jobq_private.record_audit('unsubscribe', unsubscribe.kind, unsubscribe.event);
    return true;
end
$$;
grant execute on function jobq.unsubscribe to jobq_worker, jobq_operator;
