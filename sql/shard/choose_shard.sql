-- Purpose: Returns the shard for a new job, by its keys or by what it belongs to.
-- Invariant: related jobs share a shard: batch_id decides, else after, else the first key that is
-- given. The first 16 bits of its md5, modulo 16384, are its slot, and the shard is the one with
-- the greatest md5 of number, colon and slot. So an added shard takes slots from all others, no
-- other key moves, and a router needs only one md5 and a table. md5 is the same in every version
-- of PostgreSQL and every language. Without any of these, the shard is random. Raises: 22004.
-- Argument shard_ids: the shards that get new keys, in the order of the epoch.
-- Argument after: the jobs that the job waits for; the first one decides.
-- Argument batch_id: the batch that the job joins.
-- Returns: one of shard_ids, or the shard of the batch or of the awaited job.
-- Example: select jobq.choose_shard('{0, 1}', concurrency_key => 'customer-7');
create or replace function jobq.choose_shard(
    shard_ids integer[], concurrency_key text default null, idempotency_key text default null,
    dedup_key text default null, after uuid[] default null, batch_id uuid default null
)
returns integer language plpgsql parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _key constant text := coalesce(
        choose_shard.concurrency_key, choose_shard.idempotency_key, choose_shard.dedup_key
    );
    _slot constant integer := ('x' || left(md5(_key), 4))::"bit"::integer & 16383;
begin
    perform jobq_private.check_given('shard_ids', num_nulls(nullif(shard_ids, '{}')));
    return coalesce(
        jobq_internal.shard_of(coalesce(choose_shard.batch_id, choose_shard.after[1])),
        case
            when _key is null
            then choose_shard.shard_ids[
                1 + floor(random() * cardinality(choose_shard.shard_ids))::integer
            ]
            when cardinality(choose_shard.shard_ids) = 1 then choose_shard.shard_ids[1]
            else (
                select s.shard_id
                from unnest(choose_shard.shard_ids) as s (shard_id)
                order by md5(s.shard_id || ':' || _slot) collate "C" desc
                limit 1
            )
        end
    );
end
$$;
grant execute on function jobq.choose_shard
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
