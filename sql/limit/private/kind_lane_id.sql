-- Purpose: the lane of jobs without a key, of a kind that has limits; with a key that of a kind that has
-- limits for each key.
-- Invariant: never that of a key, of which another text is hashed; of the queue's range, as lane_id(). Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.kind_lane_id(
    queue text, kind text, concurrency_key text default ''
)
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
            'kind ' || pg_catalog.length(queue) || ':' || queue
            || case when concurrency_key = '' then '' else pg_catalog.length(kind) || ':' end
            || kind || concurrency_key, 'UTF8'
        )), 1, 10), 'hex'
    )::pg_catalog.uuid;
end
$$;
