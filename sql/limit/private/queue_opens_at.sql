-- Purpose: when the limits of a whole queue let its next job start: at a time; at once (-infinity);
-- or when one has ended (infinity).
-- Invariant: one index probe where there is no such limit. Raises: nothing.
create or replace function jobq_private.queue_opens_at(queue text)
returns timestamptz
language plpgsql
stable
parallel safe
as $$
begin
    if not exists (
        select from jobq_private.queue as q
        where q.queue = queue_opens_at.queue
        and num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
    ) then
        return '-infinity'::timestamptz;
    end if;
    return (
        select case
            when coalesce(r.room, 1) > 0 then '-infinity'
            else coalesce(r.open_at, 'infinity')
        end
        from jobq_private.limit_room(queue, null, clock_timestamp()) as r
    );
end
$$;
