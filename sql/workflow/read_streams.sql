-- Purpose: Returns the chunks of several streams, each after a cursor.
-- Invariant: as read_stream(), without waiting. Raises: 22004, 22023, JQ001.
-- Argument job_ids: the job of each stream
-- Argument streams: the name of each stream
-- Argument afters: for each the cursor of the last chunk that was read; null means from the
-- beginning
-- Column chunks: as of read_stream()
-- Column cursor: the cursor after these chunks, for the next call
-- Column is_ended: whether the job has ended and this is the end of the stream
-- Example: select cursor from jobq_internal.read_streams(array[:'running'::uuid], '{tokens}', '{1-2}');
create or replace function jobq_internal.read_streams(
    job_ids uuid[], streams text[], afters text[]
)
returns table (chunks jsonb, cursor text, is_ended boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given(
        'job_ids, streams and afters', num_nulls(job_ids, streams, afters)
    );
    return query
    select r.*
    from unnest(job_ids, streams, afters) with ordinality as i (job_id, stream, after, n)
    cross join lateral jobq.read_stream(i.job_id, i.stream, i.after) as r
    order by i.n;
end
$$;
grant execute on function jobq_internal.read_streams
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
