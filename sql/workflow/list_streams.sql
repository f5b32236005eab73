-- Purpose: Lists the streams of a job, with the last generation of each.
-- Invariant: by name. Raises: 22004, JQ001.
-- Column generation: the last attempt that wrote to it
-- Column chunks: how many chunks this generation has
-- Column cursor: the cursor of the last chunk
-- Column appended_at: when the last chunk was written
-- Example: select stream, chunks from jobq.list_streams(:'running');
create or replace function jobq.list_streams(job_id uuid)
returns table (
    stream text, generation integer, chunks integer, cursor text, appended_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_streams.job_id);
    -- One look into the index for each stream, however many chunks it has.
    return query
    with recursive last as (
        (
            select c.stream, c.generation, c.n, c.appended_at
            from jobq_private.stream_chunk as c
            where c.job_id = list_streams.job_id
            order by c.stream desc, c.generation desc, c.n desc
            limit 1
        )
        union all
        select d.*
        from last as l
        cross join lateral (
            select c.stream, c.generation, c.n, c.appended_at
            from jobq_private.stream_chunk as c
            where c.job_id = list_streams.job_id and c.stream < l.stream
            order by c.stream desc, c.generation desc, c.n desc
            limit 1
        ) as d
    )
    select s.stream, s.generation, s.n, format('%s-%s', s.generation, s.n), s.appended_at
    from last as s
    order by s.stream;
end
$$;
grant execute on function jobq.list_streams
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
