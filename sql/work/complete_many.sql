-- Purpose: Ends many attempts as succeeded, and returns for each whether it still had its lease.
-- Invariant: results is an array parallel to the ids. Each attempt counts once; a stale one
-- changes nothing and does not hold up the rest. Raises: 22004, 22023, JQ005, JQ006.
-- Column outcome: succeeded; repeated if the same attempt had already succeeded; or lost if it
-- has lost its lease.
-- Example: select * from jobq.complete_many(array[:'running'::uuid], '{1}', '[{"message_id": "42"}]');
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off as $$
declare
    _moved constant bigint[] := coalesce(jobq_private.archive_jobs(
        complete_many.job_ids, complete_many.attempts, 'succeeded', jobq_private.check_results(
            complete_many.job_ids, complete_many.attempts, complete_many.results
        )
    ), '{}');
    _repeated bigint[];
begin
    -- Only then, because the query locks every partition. The time leaves most of them unread.
    if cardinality(_moved) < cardinality(complete_many.job_ids) then
        _repeated := array(
            select s.n
            from unnest(complete_many.job_ids, complete_many.attempts)
                with ordinality as s (job_id, attempt, n)
            where s.n not in (select m.n from unnest(_moved) as m (n))  -- hashed
            and exists (
                select from jobq_private.job_archive as a
                where a.job_id = s.job_id and a.attempt = s.attempt and a.state = 'succeeded'
                and a.finished_at >= jobq_private.id_time(s.job_id) - interval '1 day'
            )
        );
    end if;
    return query
    select s.job_id, s.attempt, case
        when m.n is not null then 'succeeded'
        when r.n is not null then 'repeated'
        else 'lost'
    end
    from unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as s (job_id, attempt, n)
    left join unnest(_moved) as m (n) on m.n = s.n
    left join unnest(_repeated) as r (n) on r.n = s.n
    order by s.n;
end
$$;
grant execute on function jobq.complete_many to jobq_worker;
