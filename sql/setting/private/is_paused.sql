-- Purpose: whether a queue is paused.
create or replace function jobq_private.is_paused(queue text)
returns boolean
language plpgsql
stable
as $$
begin
    return exists (
        select from jobq_private.queue as q
        where q.queue = is_paused.queue and q.paused_at is not null
    );
end
$$;
