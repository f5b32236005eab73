-- Purpose: hook: which of many queues a claim may find something in, in their order. The first
-- always counts, so that each claim calls on_claim().
create or replace function jobq_private.on_look(queues text[])
returns setof text
language plpgsql
stable
as $$
begin
    return query
    select q.queue
    from unnest(on_look.queues) with ordinality as q (queue, n)
    where q.n = 1
    or (
        select true
        from jobq_private.job as j
        where j.queue = q.queue
        and j.state in ('queued', 'retrying')
        and j.due_at is not null
        limit 1
    )
    order by q.n;
end
$$;
