-- Purpose: Adds a line to a job's log.
-- Invariant: append-only; a line is redacted and cut at 8192 characters. An attempt that has lost
-- its lease can log too. Raises: 22004, 22023, JQ001.
-- Example: select jobq.log(:'running', 1, 'INFO', 'half of it is done');
create or replace function jobq.log(job_id uuid, attempt integer, level text, message text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given(
        'every argument of log', num_nulls(log.job_id, log.attempt, log.level, log.message)
    );
    perform jobq_private.check_argument(case
        when log.level not in ('DEBUG', 'INFO', 'WARN', 'ERROR')
        then 'level must be DEBUG, INFO, WARN or ERROR'
        when log.attempt not between 0 and (jobq.get_job(log.job_id)).attempt
        then 'attempt must be an attempt of the job'
    end);
    insert into jobq_private.job_log (job_id, attempt, level, message)
    values (log.job_id, log.attempt, log.level,
        jobq_private.redacted_text(left(log.message, 8192)));
end
$$;
grant execute on function jobq.log to jobq_worker;
