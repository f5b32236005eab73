-- Purpose: the limit of a key of a kind, which its lanes in all queues pass; with an empty key, what stands in known_limit
-- for a kind whose keys have limits.
-- Invariant: never that of a lane, whose hash begins otherwise. Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.key_limit_id(kind text, concurrency_key text)
returns uuid
language plpgsql
stable
strict
parallel safe
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            'key ' || pg_catalog.length(kind)
            || ':' || kind
            || concurrency_key, 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;
