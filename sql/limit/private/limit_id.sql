-- Purpose: the id of a limit: of a queue, a kind, a key of a queue, or a key of a kind
-- in all queues; with both a queue and a kind, of a hold of the kind in the queue.
-- Invariant: a hash for which no caller can construct collisions. Not inlined, because
-- a statement would initialize each inner function for every job.
create or replace function jobq_private.limit_id(queue text, kind text, concurrency_key text)
returns uuid language plpgsql immutable as $$
begin
    return pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.concat(
                pg_catalog.length(queue), ':', queue, pg_catalog.length(kind), ':', kind,
                concurrency_key
            ), 'UTF8'
        )), 1, 16), 'hex'
    )::pg_catalog.uuid;
end
$$;
