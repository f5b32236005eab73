-- Purpose: Returns the chunks of a stream after a cursor, and whether these are the last.
-- Invariant: each chunk once, in the order of generations and of their numbers: an attempt
-- appends only while it holds the job. Reads at most 4 MiB. With wait, it polls until there is a
-- chunk or the job has ended, and holds its connection; a client that listens needs no wait, see
-- await_stream(). Raises: 22004, 22023, JQ001.
-- Argument after: the cursor of the last chunk that was read; null means from the beginning
-- Argument wait: how long to wait for a chunk, 0 to 30 s
-- Argument max_chunks: maximum number, 1 to 1000
-- Column chunks: a JSON array of objects: cursor, generation (the attempt that wrote it),
-- chunk and appended_at
-- Column cursor: the cursor after these chunks, for the next call
-- Column is_ended: whether the job has ended and this is the end of the stream
-- Example: select chunks, cursor, is_ended from jobq.read_stream(:'running', 'tokens');
create or replace function jobq.read_stream(
    job_id uuid, stream text, after text default null, wait interval default '0',
    max_chunks integer default 1000
)
returns table (chunks jsonb, cursor text, is_ended boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
declare
    _until timestamptz;
    _after integer[];
begin
    perform jobq_private.check_given('stream, wait and max_chunks', num_nulls(
        read_stream.stream, read_stream.wait, read_stream.max_chunks
    ));
    perform jobq_private.check_argument(case
        when read_stream.after !~ '^[0-9]{1,9}-[0-9]{1,9}$'
            or read_stream.wait not between '0' and '30 s'
            or read_stream.max_chunks not between 1 and 1000
        then 'after must be a cursor such as 1-20, wait from 0 to 30 s, max_chunks from 1 to 1000'
    end);
    _until := clock_timestamp() + read_stream.wait;
    read_stream.cursor := coalesce(read_stream.after, '0-0');
    _after := string_to_array(read_stream.cursor, '-')::integer[];
    loop
        -- Before it reads the chunks: after its end, a job gets no more.
        is_ended := not exists (
            select from jobq_private.job as j where j.job_id = read_stream.job_id
        );
        if is_ended then
            perform jobq.get_job(read_stream.job_id);
        end if;
        select
            coalesce(jsonb_agg(jsonb_build_object(
                'cursor', format('%s-%s', c.generation, c.n), 'generation', c.generation,
                'chunk', c.chunk, 'appended_at', c.appended_at
            ) order by c.generation, c.n) filter (where c.bytes_before < 4194304), '[]'),
            is_ended and count(*) < read_stream.max_chunks
                and coalesce(max(c.bytes_before) < 4194304, true)
        into chunks, is_ended
        from (
            select
                r.*, sum(pg_column_size(r.chunk)) over (order by r.generation, r.n)
                    - pg_column_size(r.chunk) as bytes_before
            from (
                select s.generation, s.n, s.chunk, s.appended_at
                from jobq_private.stream_chunk as s
                where s.job_id = read_stream.job_id
                and s.stream = read_stream.stream
                and (s.generation, s.n) > (_after[1], _after[2])
                order by s.generation, s.n
                limit read_stream.max_chunks
            ) as r
        ) as c;
        exit when chunks <> '[]' or is_ended or clock_timestamp() >= _until;
        perform pg_sleep(0.01);
    end loop;
    read_stream.cursor := coalesce(chunks -> -1 ->> 'cursor', read_stream.cursor);
    return next;
end
$$;
grant execute on function jobq.read_stream
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
