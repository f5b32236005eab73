-- Purpose: Adds a line to a job's log.
-- Invariant: append-only; a line is redacted and cut at 8192 characters. An attempt that has lost
-- its lease can log too. Raises: 22004, 22023, JQ001.
-- Example: select jobq.log(:'running', 1, 'INFO', 'half of it is done');
create or replace function jobq.log(
    job_id uuid, attempt integer, level text, message text
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if num_nulls(log.job_id, log.attempt, log.level, log.message) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of log');
    elsif log.level not in ('DEBUG', 'INFO', 'WARN', 'ERROR') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'level must be DEBUG, INFO, WARN or ERROR'
        );
    end if;
    if log.attempt not between 0 and (jobq.get_job(log.job_id)).attempt then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'attempt must be an attempt of the job'
        );
    end if;
    insert into jobq_private.job_log (job_id, attempt, level, message)
    values (log.job_id, log.attempt, log.level,
        jobq_private.redacted_text(left(log.message, 8192)));
end
$$;

grant execute on function jobq.log to jobq_worker;
