-- Purpose: Adds chunks to streams of many running jobs, and returns the attempts that have
-- lost their leases, and the jobs whose readers it has notified.
-- Invariant: as append(); a chunk whose number is taken is there already. The chunks of other
-- attempts are not stored. Rows are locked in the order of their ids. Readers are notified only
-- while one waits; see await_stream(). Raises: 22004, 22023, JQ005, JQ006.
-- Argument job_ids: the job of each chunk
-- Argument attempts: the attempt of each chunk
-- Argument streams: the stream of each chunk, 1 to 256 characters
-- Argument numbers: the number of each chunk in its generation, from 1
-- Argument chunks: a JSON array of at most 1000 chunks
-- Column attempt: the attempt that has lost its lease; else null
-- Column outcome: `lost` or `followed`
-- Example: select * from jobq_internal.append_many(array[:'running']::uuid[], '{1}', '{log}', '{1}', '["a"]');
create or replace function jobq_internal.append_many(
    job_ids uuid[], attempts integer[], streams text[], numbers integer[], chunks jsonb
)
returns table (job_id uuid, attempt integer, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_mergejoin = off set enable_nestloop = off as $$
#variable_conflict use_column
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
        or exists (
            select from unnest(append_many.streams) as s where length(s) not between 1 and 256
        )
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'streams (of 1 to 256 characters), numbers (from 1) and chunks: one for each job_id, at most 1000'
        );
    end if;
    return query
    with held as materialized (
        select j.job_id, j.attempt
        from jobq_private.job as j
        where j.job_id = any(append_many.job_ids) and j.lease_expires_at is not null
        order by j.job_id
        for no key update of j
    ),
    stored as (
        insert into jobq_private.stream_chunk (job_id, stream, generation, n, chunk)
        select g.job_id, g.stream, g.attempt, g.n, g.chunk
        from rows from (
            unnest(
                append_many.job_ids, append_many.attempts, append_many.streams,
                append_many.numbers
            ),
            jsonb_array_elements(append_many.chunks)
        ) as g (job_id, attempt, stream, n, chunk)
        join held as h on h.job_id = g.job_id and h.attempt = g.attempt
        on conflict on constraint stream_chunk_pkey do nothing
    )
    select distinct g.job_id, g.attempt, 'lost'
    from unnest(append_many.job_ids, append_many.attempts) as g (job_id, attempt)
    where (g.job_id, g.attempt) not in (select h.job_id, h.attempt from held as h);
    if jobq_private.is_locked('streaming', 1024) then
        return query
        select i.job_id, null::integer, 'followed'
        from (select distinct u from unnest(append_many.job_ids) as u) as i (job_id)
        where jobq_private.is_locked('streaming', hashtext(i.job_id::text) & 1023)
        and jobq_private.notify('jobq_stream', i.job_id::text);
    end if;
end
$$;
grant execute on function jobq_internal.append_many to jobq_worker;
