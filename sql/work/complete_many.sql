-- Purpose: end many attempts as succeeded. results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing and does not hold up the rest.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated if the same attempt had already succeeded; or lost if it
-- has lost its lease.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
    perform jobq_private.check_results(
        complete_many.job_ids, complete_many.attempts, complete_many.results
    );
    return query
    select s.job_id, s.attempt, case
        when m.n is not null then 'succeeded'
        when exists (
            select from jobq_private.job_archive as a
            where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
        )
        then 'repeated'
        else 'lost'
    end
    from unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
    left join unnest(jobq_private.archive_jobs(
        complete_many.job_ids, complete_many.attempts, 'succeeded', complete_many.results
    )) as m (n) on m.n = s.n
    order by s.n;
end
$$;

grant execute on function jobq.complete_many to jobq_worker;

comment on function jobq.complete_many is
'Ends many attempts as succeeded, and returns for each whether it still had its lease.';
