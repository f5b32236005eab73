-- Purpose: the lane of jobs without a key, of a kind that has limits.
-- Invariant: never that of a key, of which another text is hashed; of the queue's range, as lane_id(). Strict, and no SET clause, as
-- lane_id(). Raises: nothing.
create or replace function jobq_private.kind_lane_id(queue text, kind text)
returns uuid
language plpgsql
stable
strict
parallel safe
security invoker
as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(queue, 'UTF8')), 1, 6)
        || pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            'kind ' || pg_catalog.length(queue)
            || ':' || queue
            || kind, 'UTF8'
        )), 1, 10), 'hex'
    )::pg_catalog.uuid;
end
$$;

revoke all on function jobq_private.kind_lane_id from public;

comment on function jobq_private.kind_lane_id is
'The lane of a queue''s jobs without a key, of a kind that has limits.';
