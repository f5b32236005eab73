-- Purpose: finish attempts as succeeded; results is a JSON array parallel to the ids.
-- Invariant: each attempt counts once; a stale one changes nothing. With skip_held, what
-- another transaction holds is left alone; what a savepoint of this one holds is not. While a
-- session's jobs leave no trace, as a setting of the session remembers, they are dropped first.
-- Returns the positions, from 1, of those that did not move; null for none. Hot: its callers
-- pin the search path. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.settle_successes(
    job_ids uuid[], attempts integer[], results jsonb, skip_held boolean
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _left bigint[];
    _gone uuid[];
    _gone_attempts integer[];
begin
    if results is not null or (cardinality(job_ids) = cardinality(attempts)) is not true then
        perform jobq_private.check_results(job_ids, attempts, results);
    end if;
    if current_setting('jobq.drops', true) = 'on' then
        select d.gone, d.gone_attempts into _gone, _gone_attempts
        from jobq_private.drop_jobs(job_ids, attempts, skip_held) as d;
        if cardinality(_gone) = cardinality(job_ids) then
            return null;
        end if;
        perform set_config('jobq.drops', '', false);
    end if;
    _left := jobq_private.archive_jobs(job_ids, attempts, 'succeeded', results, skip_held);
    if _gone is not null then
        _left := array(
            select s.n
            from unnest(job_ids, attempts) with ordinality as s (job_id, attempt, n)
            where s.n = any(_left)
            and (s.job_id, s.attempt) not in (
                select g.* from unnest(_gone, _gone_attempts) as g
            )
            order by s.n
        );
    end if;
    if skip_held and _left is not null then
        _left := jobq_private.settle_rest(job_ids, attempts, results, _left);
    end if;
    return nullif(_left, '{}');
end
$$;

revoke all on function jobq_private.settle_successes from public;

comment on function jobq_private.settle_successes is
'Finishes attempts as succeeded and returns the positions of those that did not move.';
