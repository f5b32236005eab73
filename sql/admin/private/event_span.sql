-- Purpose: the time up to which a page of listen_events() reads.
-- Invariant: the archive has no index in the order of ends, but its rows are roughly in
-- that order. So a span of a second grows until it holds a page, or 20,000 rows in any
-- case. Its caller pins the planner's settings.
create or replace function jobq_private.event_span(
    since timestamptz, job_id uuid, until timestamptz, queues text[], kinds text[],
    max_events integer
)
returns timestamptz language plpgsql stable as $$
declare
    _span interval := interval '1 s';
    _to timestamptz;
    _fit bigint;
    _all bigint;
begin
    loop
        _to := least(event_span.since + _span, event_span.until);
        select
            count(*),
            count(*) filter (
                where (event_span.queues is null or a.queue = any(event_span.queues))
                and (event_span.kinds is null or a.kind = any(event_span.kinds))
            )
        into _all, _fit
        from jobq_private.job_archive as a
        where a.finished_at >= event_span.since
        and a.finished_at < _to
        and (a.finished_at, a.job_id) > (event_span.since, event_span.job_id);
        if _to = event_span.until or _fit >= event_span.max_events or _all >= 20000 then
            return _to;
        end if;
        _span := _span * 4;
    end loop;
end
$$;
