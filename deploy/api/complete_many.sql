-- Deploy jobq:api/complete_many to pg
-- Made by sql/snapshot.py from sql/api/complete_many.sql: edit that.
begin;
set local role jobq_owner;

-- Purpose: finish many attempts as succeeded. results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing and comes back as
-- 'lost', so that one of them does not hold up the rest.
-- Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq.complete_many(
    job_ids uuid[], attempts integer[], results jsonb default null
)
returns table (job_id uuid, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _ids uuid[];
    _attempts integer[];
begin
    perform jobq_private.check_results(
        complete_many.job_ids, complete_many.attempts, complete_many.results
    );
    select m.moved_ids, m.moved_attempts into _ids, _attempts
    from jobq_private.archive_jobs(
        complete_many.job_ids, complete_many.attempts, 'succeeded', complete_many.results
    ) as m;
    return query
    select f.job_id, f.attempt,
        case when d.job_id is null then 'lost' else 'succeeded' end
    from unnest(complete_many.job_ids, complete_many.attempts)
        with ordinality as f (job_id, attempt, n)
    left join unnest(_ids, _attempts) as d (job_id, attempt)
        on d.job_id = f.job_id and d.attempt = f.attempt
    order by f.n;
end
$$;

revoke all on function jobq.complete_many(uuid[], integer[], jsonb) from public;
grant execute on function jobq.complete_many(uuid[], integer[], jsonb) to jobq_worker;

comment on function jobq.complete_many(uuid[], integer[], jsonb) is
'Finishes many attempts as succeeded and tells for each whether it still held its job.';

commit;
