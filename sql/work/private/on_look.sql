-- Purpose: hook, called when a claim begins. Returns the queues in which it may find something, in
-- their order: of more than 16, those with waiting jobs.
create or replace function jobq_private.on_look(queues text[])
returns text[]
language plpgsql
stable
as $$
begin
    if cardinality(queues) <= 16 then
        return queues;
    end if;
    return array(
        select q.queue
        from unnest(on_look.queues) with ordinality as q (queue, n)
        where (
            select true
            from jobq_private.job as j
            where j.queue = q.queue
            and j.state in ('queued', 'retrying')
            and j.due_at is not null
            limit 1
        )
        order by q.n
    );
end
$$;
