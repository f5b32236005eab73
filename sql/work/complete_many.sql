-- Purpose: finish many attempts as succeeded. results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing and comes back as
-- 'lost', so that one of them does not hold up the rest. Planned once: a plan made for each call
-- looks at every partition of the archive.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated where this very attempt had succeeded before, as
-- complete() answers false; or lost where it no longer held the job.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
    return query
    select s.job_id, s.attempt, case
        when l.n is null then 'succeeded'
        when exists (
            select from jobq_private.job_archive as a
            where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
        )
        then 'repeated'
        else 'lost'
    end
    from unnest(jobq_private.settle_successes(
        complete_many.job_ids, complete_many.attempts, complete_many.results, false
    )) as l (n)
    right join unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
        on s.n = l.n
    order by s.n;
end
$$;

revoke all on function jobq.complete_many from public;
grant execute on function jobq.complete_many to jobq_worker;

comment on function jobq.complete_many is
'Finishes many attempts as succeeded and tells for each whether it still held its job.';
