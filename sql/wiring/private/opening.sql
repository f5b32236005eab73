-- Purpose: when the limits of a whole queue let a job start: infinity while it is paused or
-- nothing says when, null if nothing holds it up.
create or replace function jobq_private.opening(queue text, now timestamptz)
returns timestamptz language plpgsql stable as $$
begin
    return (
        select case
            when q.paused_at is not null then timestamptz 'infinity'
            when r.max_starts <= 0 then coalesce(r.opens_at, 'infinity')
        end
        from jobq_private.queue as q
        left join lateral (
            select l.max_starts, l.opens_at
            from jobq_private.check_limits(array[row(
                jobq_private.limit_id(q.queue, null, null), q.queue, null, null
            )::jobq_private.scope], opening.now) as l
            where num_nonnulls(q.max_running, q.rate_limit, q.budget) > 0
        ) as r on true
        where q.queue = opening.queue
    );
end
$$;
