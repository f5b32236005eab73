-- Purpose: the limit under which a job waits: that of its key (of the kind, if the kind
-- has limits for each key, else of the queue); without a key, that of its kind if it is
-- limited; else null.
create or replace function jobq_private.key_of(
    queue text, kind text, concurrency_key text, is_limited boolean
)
returns uuid language plpgsql stable as $$
begin
    if concurrency_key is null then
        return case when is_limited then jobq_private.limit_id(null, kind, null) end;
    elsif exists (
        select from jobq_private.kind as k
        where k.kind = key_of.kind
        and pg_catalog.num_nonnulls(
            k.key_max_running, k.key_rate_limit, k.ordered, k.key_budget
        ) > 0
    ) then
        return jobq_private.limit_id(null, kind, concurrency_key);
    end if;
    return jobq_private.limit_id(queue, null, concurrency_key);
end
$$;
