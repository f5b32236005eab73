-- Purpose: the lane of a job: its queue and concurrency key; null without a key.
-- Invariant: a hash that nobody can aim at another's, so that a lane is found without a
-- look, and an index on it is small. It begins with a hash of the queue, so that the lanes of one are
-- a range: from lane_floor() to lane_ceiling(). Strict, and no SET clause: without a key it is not even
-- called. Not inlined: a statement would set up each function within for every job.
-- Raises: nothing.
create or replace function jobq_private.lane_id(queue text, concurrency_key text)
returns uuid
language plpgsql
stable
strict
parallel safe
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(queue, 'UTF8')), 1, 6)
        || pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.length(queue) || ':'
            || queue || concurrency_key, 'UTF8'
        )), 1, 10), 'hex'
    )::pg_catalog.uuid;
end
$$;
