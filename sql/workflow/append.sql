-- Purpose: Adds chunks to a stream of a running job, for those who follow it, and returns
-- the cursor of the last one.
-- Invariant: only the attempt that holds the job can append, under the lock of its row. Its
-- chunks are a generation of their own, numbered from 1. With first, a repeated call adds nothing
-- twice. Chunks are kept as long as the job. Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument chunks: a JSON array of 1 to 1000 chunks, each any JSON up to max_payload_bytes
-- Argument first: the number of the first chunk in this generation; null means after the last one
-- Returns: the cursor of the last chunk
-- Example: select jobq.append(:'running', 1, 'tokens', '["Hello", " world"]');
create or replace function jobq.append(
    job_id uuid, attempt integer, stream text, chunks jsonb, first integer default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _size constant integer := case jsonb_typeof(append.chunks)
        when 'array' then jsonb_array_length(append.chunks)
    end;
    _first integer := append.first;
begin
    perform jobq_private.check_given(
        'stream and chunks', num_nulls(append.stream, append.chunks)
    );
    perform jobq_private.check_argument(case when (_size between 1 and 1000) is not true
        then 'chunks must be a JSON array of 1 to 1000 chunks' end);
    perform jobq_private.lock_attempt(append.job_id, append.attempt);
    if _first is null then
        _first := 1 + coalesce((
            select c.n
            from jobq_private.stream_chunk as c
            where c.job_id = append.job_id
            and c.stream = append.stream
            and c.generation = append.attempt
            order by c.n desc
            limit 1
        ), 0);
    end if;
    perform jobq_private.check_argument(case when _first > 1000000000 - _size
        then 'a stream has at most 999999999 chunks in a generation' end);
    perform jobq_internal.append_many(
        array_fill(append.job_id, array[_size]), array_fill(append.attempt, array[_size]),
        array_fill(append.stream, array[_size]),
        array(select n from generate_series(_first, _first + _size - 1) as n), append.chunks
    );
    return format('%s-%s', append.attempt, _first + _size - 1);
end
$$;
grant execute on function jobq.append to jobq_worker;
