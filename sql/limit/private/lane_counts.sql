-- Purpose: of each queue how many lanes have work, by priority, and how many of these are closed.
-- Invariant: lanes that no claim has opened yet count, as far as 50,000 calls tell. Raises: nothing.
create or replace function jobq_private.lane_counts()
returns table (queue text, lanes bigint, closed_lanes bigint)
language sql
stable
parallel safe
as $$
    select l.queue, count(*), count(*) filter (where l.state <> 'open')
    from (
        select l.queue, l.state
        from jobq_private.lane as l
        union all
        (
            select c.queue, 'open'
            from (
                select c.queue, c.lane_id, c.priority
                from jobq_private.lane_call as c
                limit 50000
            ) as c
            where c.priority is not null
            and not exists (
                select from jobq_private.lane as l
                where l.lane_id = c.lane_id and l.priority = c.priority
            )
            group by c.queue, c.lane_id, c.priority
        )
    ) as l
    group by l.queue
$$;
