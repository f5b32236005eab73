-- Purpose: the lane of a job: its queue and concurrency key; null without a key.
-- Invariant: a hash that nobody can aim at another's, so that a lane is found without a
-- look, and an index on it is small. No SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.lane_id(queue text, concurrency_key text)
returns uuid
language sql
stable
parallel safe
security invoker
as $$
    select case when concurrency_key is not null then pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.length(queue) || ':' || queue || concurrency_key, 'UTF8'
        )), 1, 16), 'hex'
    )::uuid end
$$;

revoke all on function jobq_private.lane_id from public;

comment on function jobq_private.lane_id is
'The lane of a queue and a concurrency key.';
