-- Purpose: check_concurrency_key() for a batch of new jobs.
-- Invariant: looks at the jobs only where a kind has a path. Raises: JQ006.
create or replace function jobq_private.check_concurrency_keys(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from jobq_private.kind as k where k.concurrency_key is not null) then
        perform jobq_private.check_concurrency_key(j, k.concurrency_key)
        from unnest(check_concurrency_keys.jobs) as j
        join jobq_private.kind as k on k.kind = j.kind
        where k.concurrency_key is not null;
    end if;
end
$$;

revoke all on function jobq_private.check_concurrency_keys from public;

comment on function jobq_private.check_concurrency_keys is
'Refuses payloads that have no concurrency key where their kinds look for it.';
