-- Purpose: Returns how many jobs were created and ended in the last hour, day or month,
-- and their durations, as a JSON document.
-- Invariant: reads only the history, at most a few thousand rows. Raises: 22004, 22023.
-- Argument span: hour, by minute; day, by ten minutes; or month, by hour.
-- Argument by: queue or kind.
-- Argument max_buckets: maximum number of buckets, 1 to 720; neighbouring ones are
-- merged if there are more.
-- Returns: a JSON object: since and until, instants; width_ms, of a bucket; counts, an array of
-- arrays: the number of the bucket, the queue or kind, how many were enqueued, succeeded,
-- failed (and tried again), dead, cancelled; latency, an array of arrays: the number of the
-- bucket, the median and the 95th percentile in milliseconds of the jobs that succeeded, of
-- all queues, from when they could first run.
-- Example: select jobq_http.show_history('day', 'kind') -> 'latency';
create or replace function jobq_http.show_history(
    span text default 'hour', by text default 'queue', queue text default null,
    kind text default null, max_buckets integer default 720
)
returns json language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off as $$
declare
    _minutes constant integer :=
        case show_history.span when 'hour' then 1 when 'day' then 10 when 'month' then 60 end;
    _all constant integer :=
        case show_history.span when 'hour' then 60 when 'day' then 144 else 720 end;
    -- This many of the history's own buckets are merged into one.
    _together integer;
    _seconds double precision;
    _until timestamptz;
    _since timestamptz;
begin
    perform jobq_private.check_count('max_buckets', show_history.max_buckets, 1, 720);
    perform jobq_private.check_given('span and by', num_nulls(show_history.span, show_history.by));
    perform jobq_private.check_argument(case
        when _minutes is null or show_history.by not in ('queue', 'kind')
        then 'span must be hour, day or month, by queue or kind'
    end);
    _together := ceil(_all / show_history.max_buckets::double precision);
    _seconds := 60 * _minutes * _together;
    _until := date_bin(
        _minutes * interval '1 min', clock_timestamp() - interval '10 s', '2000-01-01 UTC'
    );
    _since := _until - ceil(_all / _together::double precision) * _seconds * interval '1 s';

    return json_build_object(
        'since', _since,
        'until', _until,
        'width_ms', (1000 * _seconds)::bigint,
        'counts', (
            select coalesce(json_agg(json_build_array(
                c.n, c.name, c.enqueued, c.succeeded, c.failed, c.dead, c.cancelled
            ) order by c.n, c.name), '[]')
            from (
                select
                    floor(date_part('epoch', h.bucket - _since) / _seconds)::integer as n,
                    case show_history.by when 'queue' then h.queue else h.kind end as name,
                    sum(h.enqueued) as enqueued, sum(h.succeeded) as succeeded,
                    sum(h.failed) as failed, sum(h.dead) as dead,
                    sum(h.cancelled) as cancelled
                from jobq_private.history as h
                where h.minutes = _minutes
                and h.bucket >= _since and h.bucket < _until
                and (show_history.queue is null or h.queue = show_history.queue)
                and (show_history.kind is null or h.kind = show_history.kind)
                group by 1, 2
            ) as c
        ),
        'latency', (
            select coalesce(json_agg(json_build_array(q.n, q.p50, q.p95) order by q.n), '[]')
            from jobq_private.latency_percentiles(_minutes, _since, _until, _seconds) as q
        )
    );
end
$$;
grant execute on function jobq_http.show_history to jobq_operator, jobq_reader;
