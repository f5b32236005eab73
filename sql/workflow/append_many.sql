-- Purpose: Adds chunks to streams of many running jobs, and returns the attempts that have
-- lost their leases.
-- Invariant: as append(); a chunk whose number is taken is there already. The chunks of
-- other attempts are not stored. Rows are locked in the order of their ids. Readers are
-- notified only while one waits; see await_stream().
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument job_ids: the job of each chunk
-- Argument attempts: the attempt of each chunk
-- Argument streams: the stream of each chunk, 1 to 256 characters
-- Argument numbers: the number of each chunk in its generation, from 1
-- Argument chunks: a JSON array of at most 1000 chunks
-- Example: select * from jobq_internal.append_many(array[:'running']::uuid[], '{1}', '{log}', '{1}', '["a"]');
create or replace function jobq_internal.append_many(
    job_ids uuid[], attempts integer[], streams text[], numbers integer[], chunks jsonb
)
returns table (job_id uuid, attempt integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _stream text;
    _added integer;
begin
    perform jobq_private.check_results(
        append_many.job_ids, append_many.attempts, append_many.chunks
    );
    if append_many.chunks is null
        or array_position(append_many.streams, null) is not null
        or array_position(append_many.numbers, null) is not null
        or num_nulls(append_many.streams, append_many.numbers) > 0
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'streams, numbers and chunks');
    elsif cardinality(append_many.job_ids) > 1000
        or cardinality(append_many.streams) <> cardinality(append_many.job_ids)
        or cardinality(append_many.numbers) <> cardinality(append_many.job_ids)
        or 1 > any(append_many.numbers)
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'streams, numbers and chunks: one for each job_id, at most 1000; numbers from 1'
        );
    end if;
    foreach _stream in array append_many.streams loop
        if length(_stream) not between 1 and 256 then
            perform jobq_private.raise_error(
                'INVALID_ARGUMENT', 'stream must have 1 to 256 characters'
            );
        end if;
    end loop;
    perform from jobq_private.job as j
    where j.job_id = any(append_many.job_ids) and j.lease_expires_at is not null
    order by j.job_id
    for no key update;
    insert into jobq_private.stream_chunk (job_id, stream, generation, n, chunk)
    select g.job_id, g.stream, g.attempt, g.n, g.chunk
    from rows from (
        unnest(
            append_many.job_ids, append_many.attempts, append_many.streams, append_many.numbers
        ),
        jsonb_array_elements(append_many.chunks)
    ) as g (job_id, attempt, stream, n, chunk)
    join jobq_private.job as j
        on j.job_id = g.job_id and j.attempt = g.attempt and j.lease_expires_at is not null
    on conflict on constraint stream_chunk_pkey do nothing;
    get diagnostics _added = row_count;
    if _added < cardinality(append_many.job_ids) then
        return query
        select distinct g.job_id, g.attempt
        from unnest(append_many.job_ids, append_many.attempts) as g (job_id, attempt)
        where not exists (
            select from jobq_private.job as j
            where j.job_id = g.job_id
            and j.attempt = g.attempt
            and j.lease_expires_at is not null
        );
    end if;
    if jobq_private.is_held('streaming', 1024) then
        perform jobq_private.notify('jobq_stream', i.job_id)
        from (select distinct u::text from unnest(append_many.job_ids) as u) as i (job_id)
        where jobq_private.is_held('streaming', hashtext(i.job_id) & 1023);
    end if;
end
$$;

grant execute on function jobq_internal.append_many to jobq_worker;
