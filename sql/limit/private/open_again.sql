-- Purpose: open the keys of these rows, and wake their queues.
-- Invariant: adds rows, so it waits for no claim, and a concurrent claim that closes
-- one of the keys does not undo it.
create or replace function jobq_private.open_again(rows jobq_private.waiting_key[])
returns void language plpgsql as $$
begin
    if rows <> '{}' then
        insert into jobq_private.waiting_key (key_id, queue, kind, concurrency_key, priority)
        select distinct r.key_id, r.queue, r.kind, r.concurrency_key, r.priority
        from unnest(open_again.rows) as r;
        perform jobq_private.wake(array(select distinct r.queue from unnest(rows) as r));
    end if;
end
$$;
