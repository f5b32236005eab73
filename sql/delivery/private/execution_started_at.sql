-- Purpose: when the present execution of a running job began; null in its first
-- attempt. Its config stays the same since then.
-- Invariant: ignores attempts that do not count, and those before a redrive.
-- Raises: nothing.
create or replace function jobq_private.execution_started_at(job_id uuid)
returns timestamptz
language plpgsql
stable
parallel safe
as $$
declare
    _earlier integer;
begin
    select j.attempt - j.uncounted - 1 into _earlier
    from jobq_private.job as j
    where j.job_id = execution_started_at.job_id;

    if coalesce(_earlier, 0) < 1 then
        return null;
    end if;
    return (
        select t.started_at
        from jobq_private.attempt as t
        where t.job_id = execution_started_at.job_id and t.state = 'retrying'
        order by t.attempt desc
        offset _earlier - 1
        limit 1
    );
end
$$;
