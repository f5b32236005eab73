-- Purpose: the queues that a worker claims from: the given names, and before each that ends in *
-- the queues with waiting jobs that begin like it, in random order, so that none comes last each
-- time.
-- Invariant: queues are found in the rows of waiting jobs, so a new one is there at once. One
-- descent of an index for each queue with waiting jobs, and nothing where no name ends in *.
-- Callers pin the planner's settings.
create or replace function jobq_private.match_queues(queues text[])
returns text[] language plpgsql stable as $$
begin
    if strpos(array_to_string(queues, ' '), '*') = 0 then
        return queues;
    end if;
    return array(
        select u.queue
        from (
            select w.queue, (
                select min(g.n)
                from unnest(match_queues.queues) with ordinality as g (queue, n)
                where jobq_private.serves(array[g.queue], w.queue)
            ), 1
            from jobq_private.waiting_queue as w
            where w.queue <> all(match_queues.queues)
            union all
            select g.queue, g.n, 2
            from unnest(match_queues.queues) with ordinality as g (queue, n)
        ) as u (queue, n, rank)
        where u.n is not null
        order by u.n, u.rank, hashtext(u.queue || clock_timestamp())
    );
end
$$;
