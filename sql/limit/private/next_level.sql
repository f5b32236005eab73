-- Purpose: the highest priority below this one at which a queue may have open lanes; null for none.
-- Invariant: 0, which nearly all have, is not looked for: the index page that told it would be read to
-- its end. Hot: its caller pins the search path, and that no plan is made for a call. Raises: nothing.
create or replace function jobq_private.next_level(queue text, level integer)
returns integer
language plpgsql
stable
parallel safe
as $$
begin
    return coalesce(
        (
            select l.priority
            from jobq_private.lane as l
            where l.queue = next_level.queue and l.state = 'open'
            and l.priority < next_level.level and l.priority > 0
            order by l.priority desc
            limit 1
        ),
        case when next_level.level > 0 then 0 end,
        (
            select l.priority
            from jobq_private.lane as l
            where l.queue = next_level.queue and l.state = 'open'
            and l.priority < least(next_level.level, 0)
            order by l.priority desc
            limit 1
        )
    );
end
$$;
