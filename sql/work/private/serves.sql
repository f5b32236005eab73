-- Purpose: whether these queues of a worker include a queue: by its name, or by a name that ends
-- in *.
create or replace function jobq_private.serves(queues text[], queue text)
returns boolean language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
begin
    return serves.queue = any(serves.queues) or exists (
        select from unnest(serves.queues) as p (pattern)
        where right(p.pattern, 1) = '*' and starts_with(serves.queue, left(p.pattern, -1))
    );
end
$$;
