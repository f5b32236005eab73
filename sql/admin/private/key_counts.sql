-- Purpose: of each queue how many keys have work, by priority, and how many of these are closed.
create or replace function jobq_private.key_counts()
returns table (queue text, waiting_keys bigint, closed_keys bigint) language sql stable as $$
    select k.queue, count(*), count(*) filter (where not k.is_open)
    from (
        select w.queue, bool_or(w.state = 'open') as is_open
        from jobq_private.waiting_key as w
        group by w.queue, w.key_id, w.priority
    ) as k
    group by k.queue
$$;
